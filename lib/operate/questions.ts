import { randomUUID } from 'node:crypto';
import type { Bus } from '../core/store/inspector.js';
import { after } from '../core/util/clock.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { OperatorResponder } from './operator-responder.js';
import { hear, send, toldOf } from './messages.js';
import { entriesOf, type Entry } from './process-report.js';

/** Milliseconds that processes have to answer. A process reports all of its keys at most twice a second. */
const PATIENCE = { keys: 300, all: 800 };
/** Milliseconds to wait after each connection has answered once, because several can answer over one. Longer than the interval of answers. */
const LINGER = 10;

interface Asker {
  readonly queues: LockQueues;
  readonly bus: Bus | undefined;
  readonly responder: OperatorResponder;
}

/** Asks all processes what they know of these keys, or of all. It does not wait long for a process that does not answer. */
export async function askAll({ queues, bus, responder }: Asker, keys?: readonly string[]): Promise<Entry[]> {
  const entries = entriesOf(queues, (key) => keys?.includes(key) ?? true);
  if (!bus || !(await bus.open(...queues.runtime.events.ofInbox))) return entries;
  const id = randomUUID();
  const done = new Set<string>();
  let expected = Infinity;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const timers = [after(keys ? PATIENCE.keys : PATIENCE.all, end)];
  const endIfAll = (): void => {
    if (done.size >= expected) timers.push(after(LINGER, end));
  };
  const stop = await hear(bus, 'ops:told', toldOf, queues.runtime.events, (answer) => {
    if ('happenings' in answer || !answer.ids.includes(id) || answer.desk === responder.id) return;
    // It may answer the questions of other operators, too.
    for (const entry of answer.entries) if (keys?.includes(entry.key) ?? true) entries.push(entry);
    if (!answer.goesOn && answer.connection !== bus.connection) done.add(answer.connection);
    endIfAll();
  });
  try {
    // This connection receives it, too.
    expected = (await send(bus, 'ops', { id, ...(keys && { keys }) })) - 1;
    endIfAll();
    await ended;
  } catch {
    // A report of what the store knows is better than none.
  } finally {
    for (const timer of timers) clearTimeout(timer);
    stop();
  }
  return entries;
}
