import type { LockEventEmitter } from '../core/model/events.js';
import type { KeyEvent } from '../core/model/key-report.js';
import type { Bus, BusTopic } from '../core/store/inspector.js';

/** The first field of each message. A process with another version does not answer. */
const VERSION = 1;
/** Most characters of a message, more than this library sends, and most keys of a question. Larger ones are ignored unread. */
const LONGEST = 65_536;
const MOST_KEYS = 64;
const LONGEST_ID = 64;
/** Characters of a key with its namespace, or of an owner: more than there can be. Keys are compared with the patterns of operators. */
const LONGEST_NAME = 1_024;
/** Whether a text can have control characters: to look at each value takes as long as all the rest. */
const ESCAPED = /\\[bfnrtu]|[\x7f-\x9f]/;
/** Messages that are read between two iterations of the event loop. */
const AT_ONCE = 16;
/** Milliseconds: the last possible date. */
const LAST_DATE = 8.64e15;

/** Whether a value is a `T`. `type` exists for the compiler only: the types of messages are those of their checks. */
interface Check<T> {
  (value: unknown): boolean;
  readonly type?: [T];
}
type Of<C> = C extends Check<infer T> ? T : never;
type Optional<C> = { [N in keyof C]: undefined extends Of<C[N]> ? N : never }[keyof C];
type Fields<C> = { readonly [N in Exclude<keyof C, Optional<C>>]: Of<C[N]> } & { readonly [N in Optional<C>]?: Of<C[N]> };

const isText: Check<string> = (value) => typeof value === 'string';
const isId: Check<string> = (value) => typeof value === 'string' && value.length <= LONGEST_ID;
const isName: Check<string> = (value) => typeof value === 'string' && value.length <= LONGEST_NAME;
const isBoolean: Check<boolean> = (value) => typeof value === 'boolean';
const isNumber: Check<number> = (value) => typeof value === 'number';
const isNumberOrNull: Check<number | null> = (value) => value === null || isNumber(value);
/** Milliseconds since 1970 from which `Date` can make a date. */
const isDate: Check<number> = (value) => typeof value === 'number' && Math.abs(value) <= LAST_DATE;

const isNumbers: Check<Readonly<Record<string, number>>> = (value) =>
  typeof value === 'object' && value !== null && Object.values(value).every((each) => typeof each === 'number');

function optional<T>(check: Check<T>): Check<T | undefined> {
  return (value) => value === undefined || check(value);
}

function listOf<T>(check: Check<T>, most = Infinity): Check<readonly T[]> {
  return (value) => Array.isArray(value) && value.length <= most && value.every((each) => check(each));
}

function record<C extends Readonly<Record<string, Check<unknown>>>>(checks: C): Check<Fields<C>> {
  const all = Object.entries(checks);
  return (value) => all.every(([name, check]) => check((Object(value) as Record<string, unknown>)[name]));
}

/** A `ProcessReport` as it is sent: the date is milliseconds since 1970, and a held key `<uuid> <key>`. */
const isReport = record({
  label: optional(isText),
  since: isDate,
  token: isNumberOrNull,
  patienceLeft: optional(isNumberOrNull),
  waiting: isNumber,
  oldestWait: isNumber,
  holding: listOf(isText),
  handedOverUntil: optional(isDate),
});
/** The reports of a process on one of its owners, which holds a key, or by which callers wait for one. */
const isEntry = record({ key: isName, owner: isName, holder: optional(isReport), waiters: optional(listOf(isReport)) });
/** A `PastEvent`. */
const isEvent = record({
  number: isNumber,
  event: isText as Check<KeyEvent['event']>,
  key: isName,
  kind: optional(isText as Check<NonNullable<KeyEvent['kind']>>),
  label: optional(isText),
  owner: optional(isName),
  by: optional(isText),
  reason: optional(isText),
  waited: optional(isNumber),
  held: optional(isNumber),
  at: isDate,
  firstAt: isDate,
  count: isNumber,
});
/**
 * To questions and requests with these ids. `changed`: requests to a caller that has the key no more. `connection`: of the process, which other `Locks` may
 * share. `goesOn`: more messages follow.
 */
const isAnswer = record({
  ids: listOf(isName),
  changed: optional(listOf(isName)),
  connection: isName,
  entries: listOf(isEntry),
  goesOn: isBoolean,
});
/** The events of a process, `app@host:pid`: all of its events with a number above `after`, as far as they fit. `from` names it in `known`. */
const isProcessEvents = record({ process: isName, from: isId, after: isNumber, events: listOf(isEvent) });
/**
 * To all processes: what they know of these keys, or of all. `known`: and what has happened in them since the event with this number, of each of them that
 * is named.
 */
const isQuestion = record({ id: isId, keys: optional(listOf(isName, MOST_KEYS)), known: optional(isNumbers) });
/** To the process of an owner: end the work under this key, if it is that of this token. `isOver`: the key is not yours any more. */
const isRevokeRequest = record({
  id: isName,
  key: isName,
  owner: isName,
  token: optional(isNumber),
  reason: isText,
  by: optional(isText),
  isOver: isBoolean,
});

export type SentReport = Of<typeof isReport>;
export type Entry = Of<typeof isEntry>;
export type SentEvent = Of<typeof isEvent>;
export type Answer = Of<typeof isAnswer>;
export type ProcessEvents = Of<typeof isProcessEvents>;
export type Question = Of<typeof isQuestion>;
export type RevokeRequest = Of<typeof isRevokeRequest>;

export const answerOf = readerOf<Answer | ProcessEvents>((message) => isAnswer(message) || isProcessEvents(message));
export const questionOf = readerOf(isQuestion);
export const revokeRequestOf = readerOf(isRevokeRequest);

/** Reads a message from a text; `undefined`: it is not one. */
function readerOf<T>(isOne: Check<T>): (text: string) => T | undefined {
  return (text) => {
    if (text.length > LONGEST) return undefined;
    try {
      const message = Object(JSON.parse(text, ESCAPED.test(text) ? printable : undefined)) as { readonly version?: unknown };
      return message.version === VERSION && isOne(message) ? (message as T) : undefined;
    } catch {
      return undefined;
    }
  };
}

/** Texts are printed and logged: with a line break in one, another client could write lines there. */
function printable(_name: string, value: unknown): unknown {
  if (typeof value !== 'string' || !/\p{Cc}/u.test(value)) return value;
  return value.replaceAll(/\p{Cc}/gu, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function send(bus: Bus, topic: BusTopic, message: Question | Answer | ProcessEvents | RevokeRequest): Promise<number> {
  return bus.publish(topic, JSON.stringify({ version: VERSION, ...message }));
}

/** Receives what processes say, some of it at a time: many answers come at once. Resolves, when messages arrive, to a function that stops that. */
export async function listen(
  bus: Bus,
  events: LockEventEmitter,
  received: (message: Answer | ProcessEvents) => unknown,
): Promise<() => void> {
  let texts: string[] = [];
  let left = AT_ONCE;
  const read = (text: string): void => {
    // The first one begins an iteration.
    if (left-- === AT_ONCE) setImmediate(next);
    void receive(text, 'ops:told', answerOf, events, received);
  };
  const next = (): void => {
    left = AT_ONCE;
    texts.splice(0, AT_ONCE).forEach(read);
  };
  const stop = await bus.listen('ops:told', (text) => (left > 0 && texts.length === 0 ? read(text) : void texts.push(text)));
  return () => {
    texts = [];
    stop();
  };
}

/** A client with the right to publish can send anything: what is not a message, or cannot be answered, is dropped. It never rejects. */
export async function receive<T>(
  text: string,
  topic: BusTopic,
  read: (text: string) => T | undefined,
  events: LockEventEmitter,
  received: (message: T) => unknown,
): Promise<void> {
  const [, debug] = events.ofInbox;
  try {
    const message = read(text);
    if (message !== undefined) return void (await received(message));
  } catch {
    // It is not even a text, or says what nobody expects.
  }
  debug(`A message of operators (${topic}) is not valid, or of another version: it was dropped.`);
}
