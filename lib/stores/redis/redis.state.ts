import type { StoreError } from '../../core/model/errors.js';
import type { StateListener } from '../../core/store/lock-store.js';
import { after, idle, now } from '../../core/util/clock.js';
import type { RedisConnection } from './redis.connection.js';
import { textOf } from './redis.errors.js';

/** Milliseconds between two questions to a server that is silent. */
const PAUSE = 500;

/**
 * Whether Redis answers, by the events of its client, so that nothing is asked for it. A connection that breaks and is back within a requestTimeout is
 * no outage: servers close idle ones. Only a server that stays silent on an open connection is asked, until it answers.
 */
export class RedisState {
  private readonly listeners = new Set<StateListener>();
  private brokeAt: number | undefined;
  private timer: NodeJS.Timeout | undefined;
  private lastError: unknown;
  private isAway = false;
  private isAsking = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly isOwned: boolean,
  ) {}

  /** The returned function stops. */
  watch(listener: StateListener): () => void {
    if (this.listeners.size === 0) this.attach();
    this.listeners.add(listener);
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) this.detach();
    };
  }

  private attach(): void {
    const { client } = this.connection;
    client.on('close', this.onClose);
    client.on('ready', this.onAnswer);
    client.on('end', this.onEnd);
    if (this.isOwned) client.on('error', this.onError);
    this.connection.onSilence = () => void this.ask();
  }

  private detach(): void {
    const { client } = this.connection;
    client.off('close', this.onClose);
    client.off('ready', this.onAnswer);
    client.off('end', this.onEnd);
    client.off('error', this.onError);
    this.connection.onSilence = undefined;
    this.forget();
  }

  private readonly onClose = (): void => {
    if (this.brokeAt !== undefined) return;
    this.brokeAt = now();
    const { client, requestTimeout } = this.connection;
    // Of a client that is not ours, errors are printed by ioredis unless somebody listens: only while it is away it is us.
    if (!this.isOwned) client.on('error', this.onError);
    this.timer = after(requestTimeout, () => this.away()).unref();
  };

  /** Its owner has closed it, or it has given up. */
  private readonly onEnd = (): void => {
    if (this.lastError === undefined && !this.isAway) this.forget();
  };

  private readonly onError = (error: unknown): void => void (this.lastError = error);

  private readonly onAnswer = (): void => {
    this.forget();
    for (const listener of this.listeners) listener(undefined, 0);
  };

  private away(): void {
    if (this.isAway || this.brokeAt === undefined) return;
    this.isAway = true;
    const reason = this.lastError === undefined ? 'the connection is closed' : textOf(this.lastError);
    for (const listener of this.listeners) listener(reason, now() - this.brokeAt);
  }

  private forget(): void {
    clearTimeout(this.timer);
    if (!this.isOwned) this.connection.client.off('error', this.onError);
    this.brokeAt = this.lastError = undefined;
    this.isAway = false;
  }

  /** A request was not answered in time. */
  private async ask(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    this.brokeAt ??= now() - this.connection.requestTimeout;
    while (this.brokeAt !== undefined && this.listeners.size > 0) {
      const error = await this.connection
        .request((client) => client.pubsub('NUMSUB', 'nestjs-distributed-lock:health'))
        .then(
          () => undefined,
          (cause: StoreError) => cause,
        );
      // A refusal is an answer, too.
      if (!error?.transient) this.onAnswer();
      else {
        this.lastError ??= error;
        this.away();
        await idle(PAUSE);
      }
    }
    this.isAsking = false;
  }
}
