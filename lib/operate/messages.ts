import type { Revocation } from '../core/model/errors.js';
import type { LockEventEmitter } from '../core/model/events.js';
import type { Bus, BusTopic } from '../core/store/inspector.js';
import type { Happening } from './event-feed.js';
import type { Entry, Teller } from './process-report.js';

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

/** A question to all processes: what they know of these keys, or of all; or what happens from now on, for some seconds. */
export interface Ask {
  readonly id: string;
  readonly keys?: readonly string[];
  readonly watch?: boolean;
}

/** What happened in a process, `app@host:pid`. */
export interface News {
  readonly process: string;
  readonly happenings: readonly Happening[];
}

/** To the process of an owner: end the work under this key. `isOver`: the key is not yours any more. */
export interface RevokeRequest extends Revocation {
  readonly id: string;
  readonly key: string;
  readonly owner: string;
  readonly isOver: boolean;
}

/** The answer of a process to a question or a request. */
export interface Answer {
  /** The ids of the questions that it answers. */
  readonly ids: readonly string[];
  /** The ids of the `Locks`, and of its connection, which it may share with other `Locks`. */
  readonly desk: string;
  readonly connection: string;
  readonly entries: readonly Entry[];
  /** Whether more messages follow. */
  readonly goesOn: boolean;
}

export function send(bus: Bus, topic: BusTopic, message: Ask | RevokeRequest | Answer | News): Promise<number> {
  return bus.publish(topic, JSON.stringify({ version: VERSION, ...message }));
}

/** Receives the messages of a topic. */
export function hear<T>(
  bus: Bus,
  topic: BusTopic,
  read: (text: string) => T | undefined,
  events: LockEventEmitter,
  heard: (message: T) => void,
): Promise<() => void> {
  return bus.listen(topic, (text) => receive(topic, text, read, events, heard));
}

/** A client with the right to publish can send anything: what is not a message is dropped. */
export function receive<T>(
  topic: BusTopic,
  text: string,
  read: (text: string) => T | undefined,
  events: LockEventEmitter,
  heard: (message: T) => void,
): void {
  const [, debug] = events.ofInbox;
  const message = read(text);
  if (message === undefined) debug(`A message of operators (${topic}) is not valid, or of another version: it was dropped.`);
  else heard(message);
}

export function askOf(text: string): Ask | undefined {
  return messageOf<Ask>(
    text,
    ({ id, keys, watch = false }) =>
      isText(id) &&
      id.length <= LONGEST_ID &&
      typeof watch === 'boolean' &&
      (keys === undefined || (isListOf(keys, isName) && keys.length <= MOST_KEYS)),
  );
}

export function revokeRequestOf(text: string): RevokeRequest | undefined {
  const isOne = ({ id, key, owner, reason, by, isOver }: Fields<RevokeRequest>): boolean =>
    [id, key, owner].every(isName) && [reason, by ?? ''].every(isText) && typeof isOver === 'boolean';
  return messageOf(text, isOne);
}

/** News have `happenings`. */
export function toldOf(text: string): Answer | News | undefined {
  return messageOf<Answer & News>(text, (message) => ('happenings' in message ? areNews(message) : isAnswer(message)));
}

function isAnswer({ ids, desk, connection, entries }: Fields<Answer>): boolean {
  return [desk, connection].every(isName) && isListOf(ids, isName) && isListOf(entries, isEntry);
}

function areNews({ process, happenings }: Fields<News>): boolean {
  return isName(process) && isListOf(happenings, isHappening);
}

type Fields<T> = { readonly [Name in keyof T]?: unknown };

function messageOf<T>(text: string, isOne: (message: Fields<T>) => boolean): T | undefined {
  if (text.length > LONGEST) return undefined;
  try {
    const message = Object(JSON.parse(text, printable)) as { readonly version?: unknown } & Fields<T>;
    return message.version === VERSION && isOne(message) ? (message as T) : undefined;
  } catch {
    return undefined;
  }
}

/** Texts are printed and logged: with a line break in one, another client could write lines there. */
function printable(_name: string, value: unknown): unknown {
  if (typeof value !== 'string' || !/\p{Cc}/u.test(value)) return value;
  return value.replaceAll(/\p{Cc}/gu, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function isEntry(value: unknown): boolean {
  const { key, owner, holder, waiters } = Object(value) as Fields<Entry>;
  return (
    isName(key) && isName(owner) && (holder === undefined || isTeller(holder)) && (waiters === undefined || isListOf(waiters, isTeller))
  );
}

function isTeller(value: unknown): boolean {
  const { label = '', since, token, patienceLeft = null, waiting, oldestWait, holding } = Object(value) as Fields<Teller>;
  const areNumbers = [token ?? 0, patienceLeft ?? 0, waiting, oldestWait].every((each) => typeof each === 'number');
  return isText(label) && isDate(since) && areNumbers && isListOf(holding, isText);
}

function isHappening(value: unknown): boolean {
  const {
    event,
    at,
    key,
    label = '',
    owner = '',
    reason = '',
    to = '',
    waited = 0,
    held = 0,
    fencingToken,
  } = Object(value) as Fields<Happening>;
  const areNumbers = [waited, held, fencingToken ?? 0].every((each) => typeof each === 'number');
  return isDate(at) && areNumbers && [key, owner].every(isName) && [event, label, reason, to].every(isText);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isName(value: unknown): value is string {
  return isText(value) && value.length <= LONGEST_NAME;
}

/** Milliseconds since 1970 from which `Date` can make a date. */
function isDate(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= LAST_DATE;
}

function isListOf(value: unknown, isOne: (entry: unknown) => boolean): value is unknown[] {
  return Array.isArray(value) && value.every(isOne);
}
