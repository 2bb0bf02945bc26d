import { randomUUID } from 'node:crypto';
import type { Bus } from '../store/inspector.js';
import { after } from '../util/clock.js';
import type { LockQueues } from '../waiting/lock-queues.js';
import type { Desk } from './desk.js';
import { answerOf, send } from './messages.js';
import { entriesOf, type Entry } from './told.js';

/** Milliseconds that processes have to answer: those that report all their keys may do so twice a second only. */
const PATIENCE = { keys: 300, all: 800 };
/** Several answers can come over one connection: milliseconds to wait for them once there is one for each. Longer than the interval of answers. */
const LINGER = 10;

interface Asker {
  readonly queues: LockQueues;
  readonly bus: Bus | undefined;
  readonly desk: Desk;
}

/** Asks all processes what they know of these keys, or of all. Those that are silent are not waited for for long. */
export async function askAll({ queues, bus, desk }: Asker, keys?: readonly string[]): Promise<Entry[]> {
  const entries = entriesOf(queues, (key) => keys?.includes(key) ?? true);
  if (!bus || !(await bus.open((message) => queues.runtime.events.warn(message)))) return entries;
  const id = randomUUID();
  const done = new Set<string>();
  let expected = Infinity;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const timers = [after(keys ? PATIENCE.keys : PATIENCE.all, end)];
  const endIfAll = (): void => {
    if (done.size >= expected) timers.push(after(LINGER, end));
  };
  const stop = await bus.listen('ops:told', (text) => {
    const answer = answerOf(text);
    if (!answer?.ids.includes(id) || answer.desk === desk.id) return;
    // It may answer the questions of others, too.
    for (const entry of answer.entries) if (keys?.includes(entry.key) ?? true) entries.push(entry);
    if (!answer.goesOn && answer.connection !== bus.connection) done.add(answer.connection);
    endIfAll();
  });
  try {
    // This connection hears it, too.
    expected = (await send(bus, 'ops', { id, ...(keys && { keys }) })) - 1;
    endIfAll();
    await ended;
  } catch {
    // What the store knows is worth more than no report.
  } finally {
    for (const timer of timers) clearTimeout(timer);
    stop();
  }
  return entries;
}
