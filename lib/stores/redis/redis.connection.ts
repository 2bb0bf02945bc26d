import { after, now } from '../../core/util/clock.js';
import { StoreError } from '../../core/model/errors.js';
import { LinkedList, type Linked } from '../../core/util/linked-list.js';
import { detached } from '../../core/util/detached.js';

type Listener = (...args: unknown[]) => void;

/**
 * What is used of an ioredis client, single, Sentinel or Cluster. By its methods and not by its class: an app may have another copy of
 * ioredis than this package.
 */
export interface RedisClient {
  /** `undefined`: a stand-in for tests, which is always ready. */
  readonly status?: string;
  readonly isCluster?: boolean;
  readonly options?: { readonly keyPrefix?: string };
  evalsha(sha: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: (string | number)[]): Promise<unknown>;
  connect(): Promise<unknown>;
  quit(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  duplicate(override?: object): RedisClient;
  publish(channel: string, message: string): Promise<unknown>;
  pubsub(subcommand: 'NUMSUB', channel: string): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: Listener): unknown;
  off(event: string, listener: Listener): unknown;
}

interface Pending extends Linked<Pending> {
  readonly endsAt: number;
  dispatch(): void;
  fail(error: StoreError): void;
}

/** Sends requests over one client: each is answered or rejected in time, and nothing is queued for a server that is away. */
export class RedisConnection {
  /** In the order of their ends, since all may take equally long. */
  private readonly open = new LinkedList<Pending>();
  /** Those of them that were not sent yet. */
  private readonly unsent = new Set<Pending>();
  private timer: NodeJS.Timeout | undefined;
  private isListening = false;
  private isClosed = false;
  private lastError: unknown;

  constructor(
    readonly client: RedisClient,
    readonly requestTimeout: number,
    private readonly isOwned: boolean,
  ) {
    this.listen();
    // Without a listener ioredis prints each error. Of a client that is not ours, that is its owner's business.
    if (isOwned) client.on('error', this.onError);
  }

  /**
   * Sends now if the client is connected, so that requests arrive in the order of the calls; else as soon as it is.
   *
   * @param send must send nothing more once the function that it is given returns true.
   * @throws {StoreError} within requestTimeout; whether the request was applied is then unknown.
   */
  request<T>(send: (isOver: () => boolean) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request: Pending = {
        endsAt: now() + this.requestTimeout,
        dispatch: () => {
          this.stopWaiting(request);
          send(() => request.list === undefined).then(
            (value) => {
              this.ended(request);
              resolve(value);
            },
            (cause: unknown) => request.fail(storeErrorOf(cause)),
          );
        },
        fail: (error) => {
          this.ended(request);
          this.stopWaiting(request);
          reject(error);
        },
        list: undefined,
        previous: undefined,
        next: undefined,
      };
      this.listen();
      this.open.add(request);
      this.timer ??= after(this.requestTimeout, this.onTimer).unref();
      if (this.isReady) request.dispatch();
      else this.wait(request);
    });
  }

  async close(): Promise<void> {
    const { client } = this;
    if (this.isOwned) {
      if (this.isReady) await this.request(() => client.quit()).catch(() => client.disconnect());
      else client.disconnect();
      // Errors of a connection that is going away concern nobody.
      client.on('error', () => undefined);
      client.off('error', this.onError);
    }
    this.isClosed = true;
    this.stopListening();
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const request of this.open) request.fail(closed());
  }

  private get isReady(): boolean {
    const { status } = this.client;
    return status === 'ready' || status === undefined;
  }

  /** A store of a client that is not ours may be used again after it was closed. */
  private listen(): void {
    if (this.isListening) return;
    this.isListening = true;
    this.client.on('close', this.onClose);
    // A Cluster client sends again by itself what a node did not answer: it shows that only by this.
    if (this.client.isCluster) this.client.on('-node', this.onClose);
  }

  private stopListening(): void {
    this.client.off('close', this.onClose);
    this.client.off('-node', this.onClose);
    this.isListening = false;
  }

  /** What is still given up in the background once the store is closed leaves no listener at a client that lives on. */
  private ended(request: Pending): void {
    this.open.delete(request);
    if (this.isClosed && this.open.size === 0) this.stopListening();
  }

  private wait(request: Pending): void {
    const { client } = this;
    if (client.status === 'end') return request.fail(closed());
    if (this.unsent.size === 0) {
      client.on('ready', this.onReady);
      client.on('end', this.onEnd);
      if (!this.isOwned) client.on('error', this.onError);
    }
    this.unsent.add(request);
    if (client.status === 'wait') detached(() => client.connect()).catch(this.onError);
  }

  private stopWaiting(request: Pending): void {
    if (!this.unsent.delete(request) || this.unsent.size > 0) return;
    this.client.off('ready', this.onReady);
    this.client.off('end', this.onEnd);
    if (!this.isOwned) this.client.off('error', this.onError);
  }

  /** One timer for all: a timer of its own would cost a request as much as the rest of it. */
  private readonly onTimer = (): void => {
    // After a stall of the event loop the replies may be here already: they are read before this runs.
    setImmediate(() => {
      this.timer = undefined;
      for (const request of this.open) {
        const left = request.endsAt - now();
        if (left > 0) {
          this.timer = after(left, this.onTimer).unref();
          return;
        }
        request.fail(this.timedOut(this.unsent.has(request)));
      }
    });
  };

  private timedOut(isUnsent: boolean): StoreError {
    const cause = this.lastError;
    if (isUnsent) return unsent(`Redis is not connected within ${this.requestTimeout} ms.`, cause);
    return new StoreError(`Redis did not answer within ${this.requestTimeout} ms.`, { transient: true, cause });
  }

  private readonly onReady = (): void => {
    this.lastError = undefined;
    for (const request of [...this.unsent]) request.dispatch();
  };

  private readonly onEnd = (): void => {
    for (const request of [...this.unsent]) request.fail(closed());
  };

  private readonly onClose = (): void => {
    const error = new StoreError('The connection to Redis broke before the reply came.', { transient: true, cause: this.lastError });
    for (const request of this.open) if (!this.unsent.has(request)) request.fail(error);
  };

  /** A refused log-in is not mended by waiting for the next one. */
  private readonly onError = (cause: unknown): void => {
    this.lastError = cause;
    const error = storeErrorOf(cause);
    if (error.transient) return;
    for (const request of [...this.unsent]) request.fail(error);
  };
}

export function unsent(message: string, cause?: unknown): StoreError {
  return new StoreError(message, { transient: true, isUnsent: true, cause });
}

function closed(): StoreError {
  return new StoreError('The Redis client is closed.', { transient: false, isUnsent: true });
}

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b/;
const PASSING = /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|max number of clients)\b/;

/** What the server says of a request is final, unless it says that it is busy, full or not the master now; a broken line is not. */
export function storeErrorOf(cause: unknown): StoreError {
  // A Cluster client wraps what its nodes say.
  const { name, message } = Object((cause as { lastNodeError?: Error } | undefined)?.lastNodeError ?? cause) as Partial<Error>;
  const text = message ?? String(cause);
  const isFinal = name === 'ReplyError' ? !PASSING.test(text) : REFUSED.test(text) || text.includes('subscriber mode');
  return new StoreError(`Redis: ${text}`, { transient: !isFinal, cause });
}

/** The user may not do this, or not with one of these keys. */
export function isForbidden(error: unknown): boolean {
  return error instanceof StoreError && /\bNOPERM\b/.test(error.message);
}
