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
import { entriesOf } from './key-reports.js';
import {
  questionOf,
  receive,
  revokeRequestOf,
  send,
  type Entry,
  type ProcessEvents,
  type Question,
  type RevokeRequest,
} from './messages.js';

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
  /** Its name among those whose events an operator knows: short, since a question names all of them. */
  private readonly name = this.id.slice(0, 8);
  private readonly ofKeys = new Questions(INTERVAL.keys, (questions) => void this.report(questions));
  private readonly ofAll = new Questions(INTERVAL.all, (questions) => void this.report(questions));
  private readonly process: string;

  constructor(
    private readonly queues: LockQueues,
    private readonly bus: Bus | undefined,
    private readonly past: PastEvents,
  ) {
    this.process = processOf(queues.runtime.createOwner());
  }

  /** A message of another process. */
  receive(topic: 'ops' | 'revoke', text: string): Promise<void> {
    const { events } = this.queues.runtime;
    if (topic === 'ops') return receive(text, topic, questionOf, events, (question) => this.ask(question));
    return receive(text, topic, revokeRequestOf, events, (request) => this.asked(request));
  }

  close(): void {
    this.ofKeys.close();
    this.ofAll.close();
  }

  /** The events since the numbers that an operator knows, in messages that each process reads. */
  eventsSince(known: NonNullable<Question['known']>): ProcessEvents[] {
    const { name: from, process } = this;
    let after = known[from] ?? 0;
    const events = this.past.eventsAfter(after);
    if (events.length === 0) return [];
    return inMessages(events).map((part) => {
      const message = { process, from, after, events: part };
      after = part.at(-1)!.number;
      return message;
    });
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
    (question.keys ? this.ofKeys : this.ofAll).add(question);
  }

  private async report(questions: readonly Question[]): Promise<void> {
    const keys = questions[0]?.keys && new Set(questions.flatMap((question) => question.keys ?? []));
    const ids = questions.map(({ id }) => id);
    const numbers = questions.flatMap(({ known }) => (known ? [known[this.name] ?? 0] : []));
    // Before the answer, with which the operator stops listening.
    if (numbers.length > 0) for (const message of this.eventsSince({ [this.name]: Math.min(...numbers) })) this.send(message);
    for await (const { entries, isLast } of entriesOf(this.queues, keys)) this.answer(ids, entries, undefined, isLast);
  }

  private answer(ids: readonly string[], entries: readonly Entry[], changed?: readonly string[], isLast = true): void {
    const connection = this.bus?.connection ?? '';
    inMessages(entries).forEach((part, index, { length }) => {
      this.send({ ids, changed, connection, entries: part, goesOn: !isLast || index < length - 1 });
    });
  }

  private send(message: Parameters<typeof send>[2]): void {
    if (this.bus) send(this.bus, 'ops:told', message).catch(() => undefined);
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
