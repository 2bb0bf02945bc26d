// On few cores the scheduler puts a caller and the server now on one core, now on two, which changes a round trip by more than what is measured.
import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const last = cpus().length - 1;
const CORES = { server: '0', callers: last > 1 ? `1-${last}` : '1', all: `0-${last}` };

/** Keeps a process on these cores, where the system can (taskset, of Linux). */
export function keepOn(whose, pid) {
  if (last > 0) spawnSync('taskset', ['-apc', CORES[whose], String(pid)], { stdio: 'ignore' });
}
