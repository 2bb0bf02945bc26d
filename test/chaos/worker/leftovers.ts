import type { HistoryWriter } from '../history/writer.js';

/** ms: a socket needs some turns to close, and ioredis keeps a timer for its `disconnectTimeout`, two seconds, after a connection that is gone. */
const PATIENCE = 2_500;

/** The handles, timers and requests that keep this process alive, each kind with its number. */
export function resources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Notes what is there that was not there before the locks were made. */
export async function noteLeftovers(history: HistoryWriter, before: Map<string, number>, listeners: string[]): Promise<void> {
  const end = performance.now() + PATIENCE;
  let more: string[];
  do {
    await new Promise((resolve) => setTimeout(resolve, 50));
    more = [...resources()].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name, count]) => `${name} ×${count}`);
  } while (more.length > 0 && performance.now() < end);
  history.write({ e: 'left', resources: more, listeners });
}
