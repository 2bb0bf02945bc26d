import { now } from './clock.js';
import type { HistoryWriter } from './writer.js';

const EVERY = 20;
/** Smaller ones explain nothing. */
const NOTED = 30;

/** Notes each time in which this process did not run: stopped, blocked, or kept waiting by a loaded machine. */
export function watchLag(history: HistoryWriter): NodeJS.Timeout {
  let last = now();
  return setInterval(() => {
    const t = now();
    const ms = t - last - EVERY;
    last = t;
    if (ms > NOTED) history.write({ e: 'lag', ms }, t);
  }, EVERY);
}
