import { randomUUID } from 'node:crypto';
import { EventEmitter, on } from 'node:events';
import { defined } from '../core/model/check-options.js';
import { UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { after, isSettledWithin } from '../core/util/clock.js';
import { entriesOf, ownerPartsOf } from './key-reports.js';
import { listen, send, type Answer, type Entry, type ProcessEvents } from './messages.js';
import type { Operator } from './operator.js';

/** Milliseconds that processes have to answer. A process reports all of its keys at most twice a second. */
const PATIENCE = { keys: 300, all: 800 };
/** Milliseconds to wait after each connection has answered once, because several can answer over one. Longer than the interval of answers. */
const LINGER = 10;
/** Milliseconds between two messages that ask all processes to go on. */
const WATCH_INTERVAL = 2_000;

/** Asks all processes what they know of these keys, or of all. It does not wait long for a process that does not answer. */
export async function askAll({ engine: { queues, runtime, store }, responder }: Operator, keys?: readonly string[]): Promise<Entry[]> {
  const wanted = keys && new Set(keys);
  const entries: Entry[] = [];
  for await (const part of entriesOf(queues, wanted)) entries.push(...part.entries);
  const { events } = runtime;
  const { bus } = store;
  if (!bus || !(await bus.open(...events.ofInbox))) return entries;
  const id = `${responder.id}/${randomUUID().slice(0, 8)}`;
  const done = new Set<string>();
  let expected = Infinity;
  let endIfAll = (): unknown => undefined;
  const all = new Promise<void>((resolve) => (endIfAll = () => done.size >= expected && resolve()));
  const stop = await listen(bus, events, (answer) => {
    if ('events' in answer || !answer.ids.includes(id)) return;
    // It may answer the questions of other operators, too.
    entries.push(...answer.entries.filter(({ key }) => wanted?.has(key) ?? true));
    if (!answer.goesOn && answer.connection !== bus.connection) done.add(answer.connection);
    endIfAll();
  });
  try {
    // This connection receives it, too.
    expected = (await send(bus, 'ops', { id, keys })) - 1;
    endIfAll();
    if (await isSettledWithin(keys ? PATIENCE.keys : PATIENCE.all, all)) await new Promise<void>((resolve) => after(LINGER, resolve));
  } catch {
    // A report of what the store knows is better than none.
  } finally {
    stop();
  }
  return entries;
}

/** An event. One of the past has the time of the first of `count` equal ones. */
export type WatchedEvent = KeyEvent & { readonly firstAt?: Date };

/** The events of all processes that listen, until the signal aborts. @throws {UnsupportedPrimitiveError} where processes have no messages. */
export async function* watchAll(
  { engine }: Operator,
  matches: (key: string) => boolean,
  signal?: AbortSignal,
  withPast = false,
): AsyncGenerator<WatchedEvent, void, void> {
  const { events } = engine.runtime;
  const { bus, name } = engine.store;
  if (!bus || !(await bus.open(...events.ofInbox)))
    throw new UnsupportedPrimitiveError(`The processes that use this ${name} store cannot be watched: they get no messages.`);
  const heard = new EventEmitter();
  const stop = await listen(bus, events, (message) => heard.emit('message', message));
  const id = randomUUID();
  let timer: NodeJS.Timeout | undefined;
  const ask = (isFirst: boolean): void => {
    send(bus, 'ops', { id, watch: true, past: (isFirst && withPast) || undefined }).catch(() => undefined);
    timer = after(WATCH_INTERVAL, () => ask(false));
  };
  ask(true);
  try {
    for await (const [message] of on(heard, 'message', { signal }) as AsyncIterable<[Answer | ProcessEvents]>) {
      if (!('events' in message) || message.ids?.includes(id) === false) continue;
      const process = ownerPartsOf(`${message.process}:-`);
      const wanted = message.events.filter(({ key }) => matches(key));
      yield* wanted.map((event) => {
        const firstAt = event.firstAt === undefined ? undefined : new Date(event.firstAt);
        return defined({ ...event, at: new Date(event.at), firstAt, ...process });
      });
      const { dropped: count = 0 } = message;
      if (count > 0) yield { event: 'dropped', key: '', at: new Date(message.events.at(-1)?.at ?? 0), count, ...process };
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    clearTimeout(timer);
    stop();
  }
}
