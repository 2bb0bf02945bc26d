import { randomUUID } from 'node:crypto';
import type { Tenure } from '../core/holding/tenure.js';
import { watchdog } from '../core/holding/watchdog.js';
import { LockLostError } from '../core/model/errors.js';
import { processOf } from '../core/model/owner.js';
import type { PastEvents } from '../core/model/past-events.js';
import type { Bus } from '../core/store/inspector.js';
import { Alarm, now } from '../core/util/clock.js';
import { inParts } from '../core/util/in-parts.js';
import { promised } from '../core/util/promised.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import { EventFeed } from './event-feed.js';
import { entriesOf } from './key-reports.js';
import { questionOf, receive, revokeRequestOf, send, type Entry, type Question, type RevokeRequest, type SentEvent } from './messages.js';

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
  private readonly ofKeys = new Questions(INTERVAL.keys, (questions) => void this.report(questions));
  private readonly ofAll = new Questions(INTERVAL.all, (questions) => void this.report(questions));
  private readonly ofPast = new Questions(INTERVAL.all, (questions) => this.tellPast(questions));
  private readonly feed: EventFeed;
  private readonly process: string;

  constructor(
    private readonly queues: LockQueues,
    private readonly bus: Bus | undefined,
    private readonly past: PastEvents,
  ) {
    this.process = processOf(queues.runtime.createOwner());
    this.feed = new EventFeed(queues.runtime.events, (all, dropped) => this.tell(all, undefined, dropped));
  }

  /** A message of another process. */
  receive(topic: 'ops' | 'revoke', text: string): Promise<void> {
    const { events } = this.queues.runtime;
    if (topic === 'ops') return receive(text, topic, questionOf, events, (question) => this.ask(question));
    return receive(text, topic, revokeRequestOf, events, (request) => this.asked(request));
  }

  /** Resolves when the last events were sent. */
  close(): Promise<void> {
    this.ofKeys.close();
    this.ofAll.close();
    this.ofPast.close();
    return this.feed.close();
  }

  /** Asks the holder to end its work, or ends its lease. `undefined`: the owner is not one of this process; `'changed'`: another caller of it has the key. */
  revoke({ key, owner, token: meant, reason, by, isOver }: RevokeRequest): 'asked' | 'changed' | undefined {
    const tenure = this.tenureOf(key, owner);
    if (!tenure) return undefined;
    const { turn } = tenure;
    const { label, fencingToken: token } = turn;
    if (meant !== undefined && meant !== token) return 'changed';
    if (!isOver && turn.end) return 'asked';
    const { events } = this.queues.runtime;
    const who = by ?? 'an operator';
    const what = `"${key}" ${isOver ? 'is taken from' : 'is asked back from'} ${label ?? owner} by ${who}: ${reason}`;
    const revoked = { by, reason };
    events.warn(isOver ? 'NDL_TAKEN' : 'NDL_ASKED_BACK', what, { key, label, owner, token });
    if (isOver) {
      if (events.isHeard('forced')) events.emit('forced', { ...turn.event, ...revoked, token });
      tenure.lose(`${who} has taken it: ${reason}`, 'forced', revoked);
    } else turn.endBy(new LockLostError(`${what}. It is held until the work has ended.`, { key, revoked }), true);
    return 'asked';
  }

  private async asked(request: RevokeRequest): Promise<void> {
    const { id, key, owner, isOver } = request;
    if (!isOver) {
      const outcome = this.revoke(request);
      if (outcome) this.answer(outcome === 'asked' ? [id] : [], [], outcome === 'changed' ? [id] : undefined);
      return;
    }
    // No message may end a lease: the store must say that it is over. If it does not answer, the next renewal notices it.
    const reply = await promised(async () => this.tenureOf(key, owner)?.driver.check({ key, owner })).catch(() => undefined);
    if (reply && reply.state !== 'held') this.revoke(request);
  }

  private ask(question: Question): void {
    // One of this process, which has its own answer.
    if (question.id.startsWith(this.id)) return;
    if (question.past) this.ofPast.add(question);
    else if (question.watch) this.feed.watch();
    else (question.keys ? this.ofKeys : this.ofAll).add(question);
  }

  private async report(questions: readonly Question[]): Promise<void> {
    const keys = questions[0]?.keys && new Set(questions.flatMap((question) => question.keys ?? []));
    const ids = questions.map(({ id }) => id);
    for await (const { entries, isLast } of entriesOf(this.queues, keys)) this.answer(ids, entries, undefined, isLast);
  }

  /** Sends past events. Later ones are sent as they happen. */
  private tellPast(questions: readonly Question[]): void {
    this.feed.watch();
    const { all } = this.past;
    const ids = questions.map(({ id }) => id);
    if (all.length > 0) void this.tell(all, ids);
  }

  private tell(all: readonly SentEvent[], ids?: readonly string[], dropped = 0): Promise<unknown> {
    const { bus, process } = this;
    return Promise.allSettled(
      inMessages(all).map(async (events, index, { length }) => {
        const left = index === length - 1 && dropped > 0 ? { dropped } : {};
        return bus && send(bus, 'ops:told', { process, events, ids, ...left });
      }),
    );
  }

  private answer(ids: readonly string[], entries: readonly Entry[], changed?: readonly string[], isLast = true): void {
    const { bus } = this;
    if (!bus) return;
    inMessages(entries).forEach((part, index, { length }) => {
      const answer = { ids, changed, connection: bus.connection, entries: part, goesOn: !isLast || index < length - 1 };
      send(bus, 'ops:told', answer).catch(() => undefined);
    });
  }

  private tenureOf(key: string, owner: string): Tenure | undefined {
    const tenure = watchdog.tenureOf(key, owner);
    // Other `Locks` of this process receive the message, too.
    return tenure?.runtime === this.queues.runtime ? tenure : undefined;
  }
}

/** Questions that are answered together, at most once in an interval, because a client with the right to publish can send any number of them. */
class Questions {
  private asked: Question[] = [];
  private answerAt = 0;
  private readonly alarm = new Alarm(() => this.flush());

  constructor(
    private readonly interval: number,
    private readonly answer: (questions: readonly Question[]) => void,
  ) {}

  add(question: Question): void {
    if (this.asked.length >= MOST_QUESTIONS) return;
    this.asked.push(question);
    this.alarm.setBy(this.answerAt);
  }

  close(): void {
    this.alarm.stop();
  }

  private flush(): void {
    this.answerAt = now() + this.interval;
    this.answer(this.asked.splice(0));
  }
}

/** Parts that each fit into a message: one at least. */
function inMessages<T>(all: readonly T[]): T[][] {
  return all.length === 0 ? [[]] : inParts(all, [LONGEST_MESSAGE, MOST_ENTRIES], (each) => [JSON.stringify(each).length, 1]);
}
