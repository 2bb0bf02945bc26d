// With two cores the scheduler moves the callers and the server about, which changes a round trip by more than the difference to measure.
import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const last = cpus().length - 1;
const LAYOUTS = {
  together: { server: last, callers: last },
  apart: { server: 0, callers: last > 1 ? `1-${last}` : last },
  anywhere: { server: `0-${last}`, callers: `0-${last}` },
};

const taskset = (...args) => spawnSync('taskset', args.map(String), { stdio: 'ignore' }).status === 0;

/** Only Linux has `taskset`. Elsewhere the results say that no process was pinned. */
export const canPin = taskset('--version');

/** @param {'together' | 'apart' | 'anywhere'} layout on one core, the server on a core of its own, or as the scheduler likes. */
export function pin(layout, server, callers) {
  if (!canPin) return;
  const cores = LAYOUTS[layout];
  taskset('-apc', cores.server, server);
  for (const pid of callers) taskset('-apc', cores.callers, pid);
}
