import type { LockEventEmitter, LockEvents } from '../core/model/events.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { after, dateOf, now } from '../core/util/clock.js';

/** A {@link KeyEvent} as it is sent: without its process, which the message names, and with the date in milliseconds since 1970. */
export type Happening = Omit<KeyEvent, 'app' | 'host' | 'pid' | 'at'> & { readonly at: number };

/** Milliseconds for which a process sends events after it was last asked to. */
const LIFE = 5_000;
/** Milliseconds between two messages. */
const INTERVAL = 200;
/** Most events of one message. Nobody could read more. */
const MOST = 500;

/** The fields that are sent of each event. */
const TOLD: { readonly [E in KeyEvent['event']]: (event: LockEvents[E]) => Omit<Happening, 'event' | 'at' | 'key' | 'label'> } = {
  acquired: ({ owner, fencingToken, waited }) => ({ owner, fencingToken, waited }),
  waiting: () => ({}),
  passedOn: ({ owner, to }) => ({ owner, ...(to !== undefined && { to }) }),
  released: ({ owner, held }) => ({ owner, held }),
  timeout: ({ waited }) => ({ waited }),
  skipped: ({ waited }) => ({ waited }),
  aborted: ({ waited, reason }) => ({ waited, reason }),
  failed: ({ waited, error }) => ({ waited, reason: error.message }),
  lost: ({ owner, held, reason }) => ({ owner, held, reason }),
  forced: ({ owner, reason }) => ({ owner, reason }),
};

/** Sends operators what happens to keys in this process while they ask for it. Otherwise it does not listen to events. */
export class EventFeed {
  private told: Happening[] = [];
  private stops: (() => void)[] = [];
  private until = 0;
  private timer: NodeJS.Timeout | undefined;

  /** @param tell sends events, in their order. It does not reject. */
  constructor(
    private readonly events: LockEventEmitter,
    private readonly tell: (happenings: readonly Happening[]) => Promise<unknown>,
  ) {}

  /** An operator watches, for some seconds from now on. */
  watch(): void {
    this.until = now() + LIFE;
    if (this.stops.length > 0) return;
    for (const name of Object.keys(TOLD) as KeyEvent['event'][]) this.stops.push(this.hear(name));
  }

  /** Sends the remaining events: a short-lived process has most of its events then. */
  async close(): Promise<void> {
    const told = this.told;
    this.stop();
    if (told.length > 0) await this.tell(told);
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const stop of this.stops.splice(0)) stop();
    this.told = [];
  }

  private hear<E extends KeyEvent['event']>(event: E): () => void {
    return this.events.on<E>(event, (payload) => {
      const { key, label } = payload as { readonly key: string; readonly label?: string };
      if (this.told.length < MOST) {
        this.told.push({ event, at: dateOf(now()), key, ...(label !== undefined && { label }), ...TOLD[event](payload) });
      }
      this.timer ??= after(INTERVAL, () => this.flush()).unref();
    });
  }

  private flush(): void {
    this.timer = undefined;
    const told = this.told;
    if (now() > this.until) return this.stop();
    this.told = [];
    void this.tell(told);
  }
}
