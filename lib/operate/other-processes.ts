import { randomUUID } from 'node:crypto';
import { defined } from '../core/model/check-options.js';
import { UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { after, idle, isSettledWithin } from '../core/util/clock.js';
import { entriesOf, ownerPartsOf } from './key-reports.js';
import { listen, send, type Entry, type ProcessEvents } from './messages.js';
import type { Operator } from './operator.js';

/** Milliseconds that processes have to answer. A process reports all of its keys at most twice a second. */
const PATIENCE = { keys: 300, all: 800 };
/** Milliseconds to wait after each connection has answered once, because several can answer over one. Longer than the interval of answers. */
const LINGER = 10;
/** Milliseconds between two questions for events. */
const WATCH_INTERVAL = 1_000;
/** Processes that a question names, which must fit into a message: others send all of their events each time. */
const MOST_KNOWN = 200;

/** The last event that is known of each process, by its name. */
export type KnownEvents = Map<string, number>;

export interface Told {
  readonly entries: Entry[];
  readonly events: KeyEvent[];
}

/**
 * Asks all processes what they know of these keys, or of all, and what has happened in them since the events that are `known`. It does not wait long for
 * a process that does not answer, whose events come with a later answer then: a message counts only if it begins where what is known ends.
 */
export async function askAll(
  { engine: { queues, runtime, store }, responder }: Operator,
  keys?: readonly string[],
  known?: KnownEvents,
): Promise<Told> {
  const wanted = keys && new Set(keys);
  const told: Told = { entries: [], events: [] };
  const happened = ({ from, process, after, events }: ProcessEvents): void => {
    const last = known?.get(from) ?? 0;
    if (!known || after > last) return;
    const news = events.filter(({ number }) => number > last);
    told.events.push(...news.map((event) => keyEventOf(event, process)));
    if (news.length === 0) return;
    // What has changed last comes last.
    known.delete(from);
    known.set(from, news.at(-1)!.number);
  };
  for await (const part of entriesOf(queues, wanted)) told.entries.push(...part.entries);
  if (known) responder.eventsSince(Object.fromEntries(known)).forEach(happened);
  const { events } = runtime;
  const { bus } = store;
  if (!bus || !(await bus.open(...events.ofInbox))) return told;
  const id = `${responder.id}/${randomUUID().slice(0, 8)}`;
  const done = new Set<string>();
  let expected = Infinity;
  let endIfAll = (): unknown => undefined;
  const all = new Promise<void>((resolve) => (endIfAll = () => done.size >= expected && resolve()));
  const stop = await listen(bus, events, (answer) => {
    if ('events' in answer) return happened(answer);
    if (!answer.ids.includes(id)) return;
    // It may answer the questions of other operators, too.
    told.entries.push(...answer.entries.filter(({ key }) => wanted?.has(key) ?? true));
    if (!answer.goesOn && answer.connection !== bus.connection) done.add(answer.connection);
    endIfAll();
  });
  try {
    const numbers = known && Object.fromEntries([...known].slice(-MOST_KNOWN));
    // This connection receives it, too.
    expected = (await send(bus, 'ops', { id, keys, known: numbers })) - 1;
    endIfAll();
    if (await isSettledWithin(keys ? PATIENCE.keys : PATIENCE.all, all)) await new Promise<void>((resolve) => after(LINGER, resolve));
  } catch {
    // A report of what the store knows is better than none.
  } finally {
    stop();
  }
  return told;
}

/** The events of all processes that answer, past and new ones, until the signal aborts. @throws {UnsupportedPrimitiveError} where processes have no messages. */
export async function* watchAll(
  operator: Operator,
  matches: (key: string) => boolean,
  signal?: AbortSignal,
): AsyncGenerator<KeyEvent, void, void> {
  const { bus, name } = operator.engine.store;
  if (!bus || !(await bus.open(...operator.engine.runtime.events.ofInbox)))
    throw new UnsupportedPrimitiveError(`The processes that use this ${name} store cannot be watched: they get no messages.`);
  const known: KnownEvents = new Map();
  while (!signal?.aborted) {
    const { events } = await askAll(operator, [], known);
    yield* events.filter(({ key }) => matches(key)).sort((one, other) => one.at.getTime() - other.at.getTime());
    await idle(WATCH_INTERVAL, signal && [signal], true);
  }
}

function keyEventOf({ number: _number, ...event }: ProcessEvents['events'][number], process: string): KeyEvent {
  return defined({ ...event, at: new Date(event.at), firstAt: new Date(event.firstAt), ...ownerPartsOf(`${process}:-`) });
}
