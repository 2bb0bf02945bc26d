import { messageOf } from '../core/model/errors.js';
import type { LockEventEmitter } from '../core/model/events.js';
import { Alarm, dateOf, now } from '../core/util/clock.js';
import type { SentEvent } from './messages.js';

/** Milliseconds for which a process sends events after it was last asked to. */
const LIFE = 5_000;
/** Milliseconds between two messages. */
const INTERVAL = 200;
/** Most events between two messages. Nobody could read more: of the others only the number is sent. */
const MOST = 500;
/** The events that are sent, and those of their fields that are. */
// prettier-ignore
const EVENTS = ['acquired', 'waiting', 'passedOn', 'released', 'handedOver', 'timeout', 'skipped', 'aborted', 'failed', 'lost', 'forced'] as const;
// prettier-ignore
const FIELDS =
  ['event', 'at', 'key', 'kind', 'label', 'owner', 'fencingToken', 'waited', 'held', 'reason', 'by', 'to', 'adoptedFrom'] as const;

/** Sends operators the events of this process while they ask for them. Otherwise it does not listen to events. */
export class EventFeed {
  private events: SentEvent[] = [];
  /** Events that are left out of the next message. */
  private dropped = 0;
  private stops: (() => void)[] = [];
  private until = 0;
  private readonly alarm = new Alarm(() => this.flush());

  /** @param send sends events, in their order, and how many were left out behind them. It does not reject. */
  constructor(
    private readonly emitter: LockEventEmitter,
    private readonly send: (events: readonly SentEvent[], dropped: number) => Promise<unknown>,
  ) {}

  /** An operator watches, for some seconds from now on. */
  watch(): void {
    this.until = now() + LIFE;
    if (this.stops.length > 0) return;
    this.stops = EVENTS.map((event) => this.emitter.on(event, (payload: object) => this.add({ ...payload, event })));
  }

  /** Sends the remaining events: a short-lived process has most of its events then. */
  async close(): Promise<void> {
    this.stop();
    this.alarm.stop();
    if (this.events.length > 0) await this.flush();
  }

  private stop(): void {
    for (const stop of this.stops.splice(0)) stop();
  }

  private add(event: Partial<SentEvent> & { readonly error?: Error }): void {
    if (now() > this.until) return this.stop();
    if (this.events.length >= MOST) return void this.dropped++;
    const sent = { ...event, at: dateOf(now()), reason: event.reason ?? (event.error && messageOf(event.error)) };
    this.events.push(Object.fromEntries(FIELDS.map((name) => [name, sent[name]])) as unknown as SentEvent);
    this.alarm.setBy(now() + INTERVAL);
  }

  private flush(): Promise<unknown> {
    const { dropped } = this;
    this.dropped = 0;
    return this.send(this.events.splice(0), dropped);
  }
}
