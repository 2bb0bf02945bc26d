import { randomUUID } from 'node:crypto';
import type { Tenure } from '../core/holding/tenure.js';
import { LockLostError } from '../core/model/errors.js';
import { processOf } from '../core/model/owner.js';
import type { Bus } from '../core/store/inspector.js';
import { after, now } from '../core/util/clock.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import { EventFeed } from './event-feed.js';
import { questionOf, receive, revokeRequestOf, send, type Question, type RevokeRequest } from './messages.js';
import { entriesOf, type Entry } from './process-report.js';

/** Milliseconds between two answers. Questions that arrive meanwhile share the next answer. */
const INTERVAL = { keys: 5, all: 500 };
/** Questions that share an answer. Others are not answered. */
const MOST_QUESTIONS = 64;
/** Characters of a message, approximately. */
const LONGEST_MESSAGE = 8_000;
const MOST_ENTRIES = 256;

/** Answers the questions and requests of operators to this process. It sends nothing unless it is asked. */
export class OperatorResponder {
  readonly id = randomUUID();
  private readonly ofKeys = new Questions(INTERVAL.keys, (ids, keys) => this.report(ids, (key) => keys.has(key)));
  private readonly ofAll = new Questions(INTERVAL.all, (ids) => this.report(ids, () => true));
  private readonly feed: EventFeed;

  constructor(
    private readonly queues: LockQueues,
    private readonly bus: Bus | undefined,
  ) {
    const process = processOf(queues.runtime.createOwner());
    this.feed = new EventFeed(queues.runtime.events, (all) =>
      Promise.allSettled(inMessages(all).map(async (events) => bus && send(bus, 'ops:told', { process, events }))),
    );
  }

  /** A message of another process. */
  receive(topic: 'ops' | 'revoke', text: string): void {
    const { events } = this.queues.runtime;
    if (topic === 'ops') receive(text, topic, questionOf, events, (question) => this.ask(question));
    else receive(text, topic, revokeRequestOf, events, (request) => this.asked(request));
  }

  /** Resolves when the last events were sent. */
  close(): Promise<void> {
    this.ofKeys.close();
    this.ofAll.close();
    return this.feed.close();
  }

  /** Asks the holder to end its work, or ends its lease. False: the owner is not one of this process. */
  revoke({ key, owner, reason, by, isOver }: Omit<RevokeRequest, 'id'>): boolean {
    const tenure = this.tenureOf(key, owner);
    if (!tenure) return false;
    const { turn } = tenure;
    if (!isOver && turn.isEnding) return true;
    const { events } = this.queues.runtime;
    const { label, fencingToken: token } = turn;
    const who = by ?? 'an operator';
    const what = `"${key}" is ${isOver ? 'taken' : 'asked back'} from ${label ?? owner} by ${who}: ${reason}`;
    const revoked = { by, reason };
    events.warn(what, { key, label, owner, token });
    if (isOver) {
      if (events.isHeard('forced')) events.emit('forced', { ...turn.event, ...revoked, token });
      tenure.lose(`${who} has taken it: ${reason}`, 'forced', revoked);
    } else turn.revoke(new LockLostError(`${what}. It is held until the work has ended.`, { key, revoked }));
    return true;
  }

  private asked(request: RevokeRequest): void {
    if (request.isOver) void this.revokeIfOver(request);
    else if (this.revoke(request)) this.answer([request.id], []);
  }

  /** No message may end a lease: the store must say that it is over. */
  private async revokeIfOver(request: RevokeRequest): Promise<void> {
    const { key, owner } = request;
    try {
      const reply = await this.tenureOf(key, owner)?.driver.check({ key, owner });
      if (reply && reply.state !== 'held') this.revoke(request);
    } catch {
      // The next renewal notices it.
    }
  }

  private ask({ id, keys, watch }: Question): void {
    if (watch) this.feed.watch();
    else if (keys) this.ofKeys.add(id, keys);
    else this.ofAll.add(id, []);
  }

  private report(ids: readonly string[], isWanted: (key: string) => boolean): void {
    this.answer(ids, entriesOf(this.queues, isWanted));
  }

  private answer(ids: readonly string[], entries: readonly Entry[]): void {
    const { bus, id: responder } = this;
    if (!bus) return;
    inMessages(entries).forEach((part, index, { length }) => {
      const answer = { ids, responder, connection: bus.connection, entries: part, goesOn: index < length - 1 };
      send(bus, 'ops:told', answer).catch(() => undefined);
    });
  }

  private tenureOf(key: string, owner: string): Tenure | undefined {
    const queues = this.queues.all.filter((queue) => queue.key === key);
    return queues.flatMap(({ holders }) => holders).find((tenure) => tenure.owner === owner);
  }
}

/** Questions that are answered together, at most once in an interval, because a client with the right to publish can send any number of them. */
class Questions {
  private ids: string[] = [];
  private keys = new Set<string>();
  private answeredAt = -Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly interval: number,
    private readonly answer: (ids: readonly string[], keys: ReadonlySet<string>) => void,
  ) {}

  add(id: string, keys: readonly string[]): void {
    if (this.ids.length >= MOST_QUESTIONS) return;
    this.ids.push(id);
    for (const key of keys) this.keys.add(key);
    this.timer ??= after(this.answeredAt + this.interval - now(), () => this.flush()).unref();
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private flush(): void {
    const { ids, keys } = this;
    this.timer = undefined;
    this.answeredAt = now();
    this.ids = [];
    this.keys = new Set();
    this.answer(ids, keys);
  }
}

/** Cuts a list into parts that each fit into a message: one at least. */
function inMessages<T>(all: readonly T[]): T[][] {
  const parts: T[][] = [[]];
  let length = 0;
  for (const entry of all) {
    const { length: own } = JSON.stringify(entry);
    const last = parts.at(-1) as T[];
    const isFull = last.length > 0 && (length + own > LONGEST_MESSAGE || last.length >= MOST_ENTRIES);
    if (isFull) parts.push([entry]);
    else last.push(entry);
    length = isFull ? own : length + own;
  }
  return parts;
}
