import type { LockEventEmitter } from '../core/model/events.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { after, dateOf, now } from '../core/util/clock.js';

/** A {@link KeyEvent} as it is sent: without its process, which the message names, and with the date in milliseconds since 1970. */
export type SentEvent = Omit<KeyEvent, 'app' | 'host' | 'pid' | 'at'> & { readonly at: number };

/** Milliseconds for which a process sends events after it was last asked to. */
const LIFE = 5_000;
/** Milliseconds between two messages. */
const INTERVAL = 200;
/** Most events of one message. Nobody could read more. */
const MOST = 500;

/** The events that are sent, with these of their fields besides key and label. */
const FIELDS: { readonly [E in KeyEvent['event']]: readonly (keyof SentEvent)[] } = {
  acquired: ['owner', 'fencingToken', 'waited'],
  waiting: [],
  passedOn: ['owner', 'to'],
  released: ['owner', 'held'],
  timeout: ['waited'],
  skipped: ['waited'],
  aborted: ['waited', 'reason'],
  failed: ['waited', 'reason'],
  lost: ['owner', 'held', 'reason'],
  forced: ['owner', 'reason'],
};

/** Sends operators the events of this process while they ask for them. Otherwise it does not listen to events. */
export class EventFeed {
  private events: SentEvent[] = [];
  private stops: (() => void)[] = [];
  private until = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param send sends events, in their order. It does not reject. */
  constructor(
    private readonly emitter: LockEventEmitter,
    private readonly send: (events: readonly SentEvent[]) => Promise<unknown>,
  ) {}

  /** An operator watches, for some seconds from now on. */
  watch(): void {
    this.until = now() + LIFE;
    if (this.stops.length > 0) return;
    for (const event of Object.keys(FIELDS) as KeyEvent['event'][]) {
      this.stops.push(this.emitter.on(event, (payload) => this.add(event, payload as Partial<SentEvent>)));
    }
  }

  /** Sends the remaining events: a short-lived process has most of its events then. */
  async close(): Promise<void> {
    const { events } = this;
    this.stop();
    if (events.length > 0) await this.send(events);
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const stop of this.stops.splice(0)) stop();
    this.events = [];
  }

  private add(event: KeyEvent['event'], payload: Partial<SentEvent> & { readonly error?: Error }): void {
    if (this.events.length < MOST) {
      const sent = { ...payload, event, at: dateOf(now()), reason: payload.reason ?? payload.error?.message };
      const names = ['event', 'at', 'key', 'label', ...FIELDS[event]] as const;
      this.events.push(Object.fromEntries(names.map((name) => [name, sent[name]])) as unknown as SentEvent);
    }
    this.timer ??= after(INTERVAL, () => this.flush()).unref();
  }

  private flush(): void {
    this.timer = undefined;
    const { events } = this;
    if (now() > this.until) return this.stop();
    this.events = [];
    void this.send(events);
  }
}
