import { randomUUID } from 'node:crypto';
import { UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { partsOf } from '../core/model/owner.js';
import { after } from '../core/util/clock.js';
import { listen, send, type ProcessEvents } from './messages.js';
import type { Operator } from './operator.js';
import { entriesOf, type Entry } from './process-report.js';

/** Milliseconds that processes have to answer. A process reports all of its keys at most twice a second. */
const PATIENCE = { keys: 300, all: 800 };
/** Milliseconds to wait after each connection has answered once, because several can answer over one. Longer than the interval of answers. */
const LINGER = 10;
/** Milliseconds between two messages that ask all processes to go on. */
const WATCH_INTERVAL = 2_000;

/** Asks all processes what they know of these keys, or of all. It does not wait long for a process that does not answer. */
export async function askAll({ queues, bus, responder }: Operator, keys?: readonly string[]): Promise<Entry[]> {
  const { events } = queues.runtime;
  const isWanted = (key: string): boolean => keys?.includes(key) ?? true;
  const entries = entriesOf(queues, isWanted);
  if (!bus || !(await bus.open(...events.ofInbox))) return entries;
  const id = randomUUID();
  const done = new Set<string>();
  let expected = Infinity;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const timers = [after(keys ? PATIENCE.keys : PATIENCE.all, end)];
  const endIfAll = (): void => {
    if (done.size >= expected) timers.push(after(LINGER, end));
  };
  const stop = await listen(bus, events, (answer) => {
    if ('events' in answer || !answer.ids.includes(id) || answer.responder === responder.id) return;
    // It may answer the questions of other operators, too.
    entries.push(...answer.entries.filter(({ key }) => isWanted(key)));
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

/** The events of all processes that listen, until the signal aborts. @throws {UnsupportedPrimitiveError} where processes have no messages. */
export async function* watchAll(
  { bus, queues, store }: Operator,
  matches: RegExp,
  signal?: AbortSignal,
): AsyncGenerator<KeyEvent, void, void> {
  const { events } = queues.runtime;
  if (!bus || !(await bus.open(...events.ofInbox)))
    throw new UnsupportedPrimitiveError(`The processes that use this ${store.name} store cannot be watched: they get no messages.`);
  const received: KeyEvent[] = [];
  let wake = (): void => undefined;
  const stop = await listen(bus, events, (message) => {
    if (!('events' in message)) return;
    received.push(...keyEventsOf(message).filter(({ key }) => matches.test(key)));
    wake();
  });
  const ask = (): void => {
    send(bus, 'ops', { id: randomUUID(), watch: true }).catch(() => undefined);
    timer = after(WATCH_INTERVAL, ask);
  };
  let timer: NodeJS.Timeout | undefined;
  ask();
  const onAbort = (): void => wake();
  signal?.addEventListener('abort', onAbort);
  try {
    while (!signal?.aborted) {
      yield* received.splice(0);
      if (received.length === 0 && !signal?.aborted) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    stop();
  }
}

function keyEventsOf({ process, events }: ProcessEvents): KeyEvent[] {
  const { app, host, pid } = partsOf(`${process}:-`) ?? { app: process, host: '', pid: 0 };
  return events.map((event) => ({ ...event, at: new Date(event.at), app, host, pid }));
}
