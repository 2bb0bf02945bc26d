import { StoreError } from '../../core/errors.js';

type Listener = (...args: unknown[]) => void;

/**
 * What is used of an ioredis client, single, Sentinel or Cluster. By its methods and not by its class: an app may have another copy of
 * ioredis than this package.
 */
export interface RedisClient {
  readonly status: string;
  readonly isCluster?: boolean;
  evalsha(sha: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  connect(): Promise<unknown>;
  quit(): Promise<unknown>;
  disconnect(): void;
  on(event: string, listener: Listener): unknown;
  off(event: string, listener: Listener): unknown;
}

interface Waiting {
  dispatch(): void;
  fail(error: StoreError): void;
}

const never = (): boolean => false;

/** Sends requests over one client: each is answered or rejected in time, and nothing is queued for a server that is away. */
export class RedisConnection {
  private readonly inFlight = new Set<(error: StoreError) => void>();
  private readonly waiting = new Set<Waiting>();
  private lastError: unknown;

  constructor(
    readonly client: RedisClient,
    private readonly requestTimeout: number,
    private readonly isOwned: boolean,
  ) {
    client.on('close', this.onClose);
    // Without a listener ioredis prints each error. Of a client that is not ours, that is its owner's business.
    if (isOwned) client.on('error', this.onError);
  }

  /**
   * Sends now if the client is connected, so that requests arrive in the order of the calls; else as soon as it is.
   *
   * @param isAbandoned nothing is sent any more once it returns true.
   * @throws {StoreError} within requestTimeout; whether the request was applied is then unknown.
   */
  request<T>(send: () => Promise<T>, isAbandoned = never): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.inFlight.delete(fail);
        this.stopWaiting(place);
      };
      const fail = (error: StoreError): void => {
        settle();
        reject(error);
      };
      const place: Waiting = {
        fail,
        dispatch: () => {
          this.stopWaiting(place);
          if (isAbandoned()) return fail(new StoreError('The request was abandoned before it was sent.', { transient: true }));
          this.inFlight.add(fail);
          send().then(
            (value) => {
              settle();
              resolve(value);
            },
            (cause: unknown) => fail(storeErrorOf(cause)),
          );
        },
      };
      const timer = setTimeout(() => fail(this.timedOut(this.waiting.has(place))), this.requestTimeout);
      if (this.client.status === 'ready') place.dispatch();
      else this.wait(place);
    });
  }

  async close(): Promise<void> {
    const { client } = this;
    client.off('close', this.onClose);
    if (!this.isOwned) return;
    if (client.status === 'ready') await this.request(() => client.quit()).catch(() => client.disconnect());
    else client.disconnect();
    client.off('error', this.onError);
    // Errors of a connection that is going away concern nobody.
    client.on('error', () => undefined);
  }

  private wait(place: Waiting): void {
    const { client } = this;
    if (client.status === 'end') return place.fail(closed());
    if (this.waiting.size === 0) {
      client.on('ready', this.onReady);
      client.on('end', this.onEnd);
      if (!this.isOwned) client.on('error', this.onError);
    }
    this.waiting.add(place);
    if (client.status === 'wait') client.connect().catch(this.onError);
  }

  private stopWaiting(place: Waiting): void {
    if (!this.waiting.delete(place) || this.waiting.size > 0) return;
    this.client.off('ready', this.onReady);
    this.client.off('end', this.onEnd);
    if (!this.isOwned) this.client.off('error', this.onError);
  }

  private timedOut(isWaiting: boolean): StoreError {
    const cause = this.lastError;
    const what = isWaiting ? 'is not connected' : 'did not answer';
    return new StoreError(`Redis ${what} within ${this.requestTimeout} ms.`, { transient: true, cause });
  }

  private readonly onReady = (): void => {
    this.lastError = undefined;
    for (const place of [...this.waiting]) place.dispatch();
  };

  private readonly onEnd = (): void => {
    for (const place of [...this.waiting]) place.fail(closed());
  };

  private readonly onClose = (): void => {
    const error = new StoreError('The connection to Redis broke before the reply came.', { transient: true, cause: this.lastError });
    for (const fail of [...this.inFlight]) fail(error);
  };

  /** A refused log-in is not mended by waiting for the next one. */
  private readonly onError = (cause: unknown): void => {
    this.lastError = cause;
    const error = storeErrorOf(cause);
    if (error.transient) return;
    for (const place of [...this.waiting]) place.fail(error);
  };
}

function closed(): StoreError {
  return new StoreError('The Redis client is closed.', { transient: false });
}

const PERMANENT = /\b(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|NOPROTO)\b/;
const TRANSIENT = /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|max number of clients)\b/;

/** What the server says of a request is final, unless it says that it is busy, full or not the master now; a broken line is not. */
function storeErrorOf(cause: unknown): StoreError {
  const { name, message } = cause as Error;
  const isReply = name === 'ReplyError';
  const transient = isReply ? !PERMANENT.test(message) && TRANSIENT.test(message) : !message.includes('subscriber mode');
  return new StoreError(`Redis: ${message}`, { transient, cause });
}
