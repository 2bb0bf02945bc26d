import type { StoreError } from '../../../core/model/errors.js';
import type { StateListener } from '../../../core/store/lock-store.js';
import { after, idle, now } from '../../../core/util/clock.js';
import { hasGivenUp } from './redis.client.js';
import type { RedisConnection } from './redis.connection.js';
import { GIVEN_UP, textOf } from './redis.errors.js';

/** Milliseconds between two questions to a server that is silent. */
const PAUSE = 500;

/**
 * Whether Redis answers, by the events of its client, so that nothing is asked for it. A connection that breaks and is back within a requestTimeout is
 * no outage: servers close idle ones. Only when a request was not answered the server is asked, until it answers.
 */
export class RedisState {
  private readonly listeners = new Set<StateListener>();
  /** Since when it may be away. */
  private brokeAt: number | undefined;
  private timer: NodeJS.Timeout | undefined;
  private lastError: unknown;
  private isAway = false;
  private isAsking = false;

  constructor(private readonly connection: RedisConnection) {}

  /** The returned function stops. */
  watch(listener: StateListener): () => void {
    const { connection } = this;
    connection.breakListeners.add(this.onBreak);
    connection.onSilence = () => void this.ask();
    this.listeners.add(listener);
    return () => {
      if (!this.listeners.delete(listener) || this.listeners.size > 0) return;
      connection.breakListeners.delete(this.onBreak);
      connection.onSilence = undefined;
      this.forget();
    };
  }

  private readonly onBreak = (): void => this.suspect(now());

  /** Only from now on more than one event is listened to: a client that is not ours may be lent to many stores. */
  private suspect(since: number): void {
    if (this.brokeAt !== undefined) return;
    this.brokeAt = since;
    const { client, requestTimeout } = this.connection;
    client.on('ready', this.onAnswer);
    client.on('end', this.onEnd);
    client.on('error', this.onError);
    this.timer = after(requestTimeout, () => this.away()).unref();
  }

  private readonly onAnswer = (): void => {
    this.forget();
    for (const listener of this.listeners) listener(undefined, 0);
  };

  /** Its owner has closed it, or it has given up. */
  private readonly onEnd = (): void => {
    if (hasGivenUp(this.connection.client)) this.away(GIVEN_UP);
    else if (this.lastError === undefined && !this.isAway) this.forget();
  };

  private readonly onError = (error: unknown): void => void (this.lastError = error);

  /** @param remedy where it will not answer again by itself. */
  private away(remedy?: string): void {
    if (this.brokeAt === undefined || (this.isAway && remedy === undefined)) return;
    this.isAway = true;
    const cause = this.lastError ?? this.connection.lastError;
    const reason = cause === undefined ? 'the connection is closed' : textOf(cause);
    for (const listener of this.listeners) listener(reason, now() - this.brokeAt, remedy);
  }

  private forget(): void {
    clearTimeout(this.timer);
    const { client } = this.connection;
    client.off('ready', this.onAnswer);
    client.off('end', this.onEnd);
    client.off('error', this.onError);
    this.brokeAt = this.lastError = undefined;
    this.isAway = false;
  }

  /** A request was not answered in time. */
  private async ask(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    this.suspect(now() - this.connection.requestTimeout);
    while (this.brokeAt !== undefined) {
      const error = await this.connection
        .request((client) => client.pubsub('NUMSUB', 'nestjs-distributed-lock:health'))
        .then(
          () => undefined,
          (cause: StoreError) => cause,
        );
      // A refusal is an answer, too. The connection may have said so meanwhile.
      if (this.brokeAt === undefined) break;
      // The client is closed for good: it will not answer again.
      if (error?.isUnsent && !error.transient) break;
      if (error?.transient) {
        this.lastError ??= error;
        await idle(PAUSE);
      } else this.onAnswer();
    }
    this.isAsking = false;
  }
}
