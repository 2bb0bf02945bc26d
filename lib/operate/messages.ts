import type { Revocation } from '../core/model/errors.js';
import type { LockEventEmitter } from '../core/model/events.js';
import type { Bus, BusTopic } from '../core/store/inspector.js';
import type { SentEvent } from './event-feed.js';
import type { Entry, SentReport } from './process-report.js';

/** The first field of each message. A process with another version does not answer. */
const VERSION = 1;
/** Most characters of a message, more than this library sends, and most keys of a question. Larger ones are ignored unread. */
const LONGEST = 65_536;
const MOST_KEYS = 64;
const LONGEST_ID = 64;
/** Characters of a key with its namespace, or of an owner: more than there can be. Keys are compared with the patterns of operators. */
const LONGEST_NAME = 1_024;
/** Milliseconds: the last possible date. */
const LAST_DATE = 8.64e15;

/** A question to all processes: what they know of these keys, or of all; or their events from now on, for some seconds. */
export interface Question {
  readonly id: string;
  readonly keys?: readonly string[];
  readonly watch?: boolean;
}

/** The answer of a process to a question or a request. */
export interface Answer {
  /** The ids of the questions that it answers. */
  readonly ids: readonly string[];
  /** The ids of the `Locks`, and of its connection, which it may share with other `Locks`. */
  readonly responder: string;
  readonly connection: string;
  readonly entries: readonly Entry[];
  /** Whether more messages follow. */
  readonly goesOn: boolean;
}

/** The events of a process, `app@host:pid`. */
export interface ProcessEvents {
  readonly process: string;
  readonly events: readonly SentEvent[];
}

/** To the process of an owner: end the work under this key. `isOver`: the key is not yours any more. */
export interface RevokeRequest extends Revocation {
  readonly id: string;
  readonly key: string;
  readonly owner: string;
  readonly isOver: boolean;
}

export function send(bus: Bus, topic: BusTopic, message: Question | Answer | ProcessEvents | RevokeRequest): Promise<number> {
  return bus.publish(topic, JSON.stringify({ version: VERSION, ...message }));
}

/** Receives what processes say. Resolves, when messages arrive, to a function that stops that. */
export function listen(bus: Bus, events: LockEventEmitter, received: (message: Answer | ProcessEvents) => void): Promise<() => void> {
  return bus.listen('ops:told', (text) => receive(text, 'ops:told', answerOf, events, received));
}

/** A client with the right to publish can send anything: what is not a message is dropped. */
export function receive<T>(
  text: string,
  topic: BusTopic,
  read: (text: string) => T | undefined,
  events: LockEventEmitter,
  received: (message: T) => void,
): void {
  const [, debug] = events.ofInbox;
  const message = read(text);
  if (message === undefined) debug(`A message of operators (${topic}) is not valid, or of another version: it was dropped.`);
  else received(message);
}

type Check = (value: unknown) => boolean;
type Checks<T> = { readonly [Name in keyof T]-?: Check };

const isText: Check = (value) => typeof value === 'string';
const isId: Check = (value) => typeof value === 'string' && value.length <= LONGEST_ID;
const isName: Check = (value) => typeof value === 'string' && value.length <= LONGEST_NAME;
const isBoolean: Check = (value) => typeof value === 'boolean';
const isNumber: Check = (value) => typeof value === 'number';
const isNumberOrNull: Check = (value) => value === null || isNumber(value);
/** Milliseconds since 1970 from which `Date` can make a date. */
const isDate: Check = (value) => typeof value === 'number' && Math.abs(value) <= LAST_DATE;
const isOptional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isListOf =
  (check: Check, most = Infinity): Check =>
  (value) =>
    Array.isArray(value) && value.length <= most && value.every(check);
const isRecord =
  <T>(checks: Checks<T>): Check =>
  (value) =>
    Object.entries<Check>(checks).every(([name, check]) => check((Object(value) as Record<string, unknown>)[name]));

const isReport = isRecord<SentReport>({
  label: isOptional(isText),
  since: isDate,
  token: isNumberOrNull,
  patienceLeft: isOptional(isNumberOrNull),
  waiting: isNumber,
  oldestWait: isNumber,
  holding: isListOf(isText),
});
const isEntry = isRecord<Entry>({ key: isName, owner: isName, holder: isOptional(isReport), waiters: isOptional(isListOf(isReport)) });
const isEvent = isRecord<SentEvent>({
  event: isText,
  at: isDate,
  key: isName,
  label: isOptional(isText),
  owner: isOptional(isName),
  fencingToken: isOptional(isNumberOrNull),
  waited: isOptional(isNumber),
  held: isOptional(isNumber),
  reason: isOptional(isText),
  to: isOptional(isText),
});
const isAnswer = isRecord<Answer>({
  ids: isListOf(isName),
  responder: isName,
  connection: isName,
  entries: isListOf(isEntry),
  goesOn: isBoolean,
});
const isProcessEvents = isRecord<ProcessEvents>({ process: isName, events: isListOf(isEvent) });
const isQuestion = isRecord<Question>({ id: isId, keys: isOptional(isListOf(isName, MOST_KEYS)), watch: isOptional(isBoolean) });
const isRevokeRequest = isRecord<RevokeRequest>({
  id: isName,
  key: isName,
  owner: isName,
  reason: isText,
  by: isOptional(isText),
  isOver: isBoolean,
});

export const answerOf = readerOf<Answer | ProcessEvents>((message) => isAnswer(message) || isProcessEvents(message));
export const questionOf = readerOf<Question>(isQuestion);
export const revokeRequestOf = readerOf<RevokeRequest>(isRevokeRequest);

/** Reads a message from a text; `undefined`: it is none. */
function readerOf<T>(isOne: Check): (text: string) => T | undefined {
  return (text) => {
    if (text.length > LONGEST) return undefined;
    try {
      const message = Object(JSON.parse(text, printable)) as { readonly version?: unknown };
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
