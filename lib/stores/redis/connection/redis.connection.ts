import { StoreError } from '../../../core/model/errors.js';
import { RequestDeadlines, type TimedRequest } from '../../../core/store/request-deadlines.js';
import { after } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { RedisPipelines } from './redis.pipelines.js';
import { hasGivenUp, nodesOf, type RedisClient } from './redis.client.js';
import { closed, GIVEN_UP, isOfSelect, isRedirection, storeErrorOf, strayed, unsent } from './redis.errors.js';
import { DirectScripts, recall, type ScriptSender, type SentCommand } from './script.sender.js';

/** Milliseconds until a client that has ended is connected again. */
const RECONNECT_DELAY = 50;

/** One request over a {@link RedisConnection}, which calls `answered` or `failed` once, in time. */
export interface RedisRequest extends TimedRequest<RedisRequest> {
  isSent: boolean;
  /** On a Cluster it goes to the node of this key; `undefined`: to any node. */
  readonly key?: string;
  /** The master that it was sent to and its replicas; `undefined`: that is not known. */
  nodes?: readonly string[];
  /** The command that was sent last for it, where the client may send it again. */
  command?: SentCommand;
  /** Whether it does no harm after its caller was rejected. */
  readonly mayBeLate?: boolean;
  /** @param isWhole the server does not know the script: send its text. */
  send(client: RedisClient, isWhole: boolean): Promise<unknown>;
  /** @param reply what the client gives: it is to be checked. */
  answered(reply: unknown): void;
  /** It is unknown whether the request was applied, unless the error `isUnsent`. */
  failed(error: StoreError): void;
}

/** Sends requests over one client: each is answered or rejected in time, and nothing is queued for a server that is away. */
export class RedisConnection {
  readonly keyPrefix: string;
  private readonly requests: RequestDeadlines<RedisRequest>;
  /** Requests that were not sent yet. */
  private readonly unsent = new Set<RedisRequest>();
  private isListening = false;
  private isClosed = false;
  readonly scripts: ScriptSender;
  lastError: unknown;
  /** Set once the server is known as one node of several: some keys would be granted by luck. */
  misled: StoreError | undefined;
  /** Set while the connection is in another database than the one that was chosen, where other apps may be: nothing is done there. */
  astray: StoreError | undefined;
  private isChecked = false;
  /** Called when a connection breaks; with what to do, where a client that is not ours has ended by itself. */
  readonly breakListeners = new Set<(remedy?: string) => void>();

  /** @param lent that of the client whose duplicate this one is: it is connected, too. */
  constructor(
    readonly client: RedisClient,
    readonly requestTimeout: number,
    private readonly isOwned: boolean,
    scripts?: ScriptSender,
    private readonly lent?: RedisConnection,
  ) {
    this.scripts = scripts ?? (client.isCluster ? new RedisPipelines(client, requestTimeout) : new DirectScripts(client));
    this.keyPrefix = client.options?.keyPrefix ?? '';
    this.requests = new RequestDeadlines(requestTimeout, (request) => {
      this.fail(request, this.timedOut(!request.isSent));
      if (isOwned && request.isSent) client.breakOff?.();
    });
    this.listen();
    // Without a listener ioredis prints each error. The owner of a lent client decides on that.
    if (isOwned) client.on('error', this.onError);
  }

  /** Sends now if the client is connected, so that requests arrive in the order of the calls; else as soon as it is. */
  send(request: RedisRequest): void {
    this.listen();
    this.requests.begin(request);
    if (this.isReady) this.dispatch(request);
    else this.wait(request);
  }

  /** A request that is no script. @throws {StoreError} within requestTimeout. */
  request(send: (client: RedisClient) => Promise<unknown>): Promise<unknown> {
    return new Promise((answered, failed) => {
      const unlisted = { list: undefined, previous: undefined, next: undefined };
      this.send({ send, answered, failed, endsAt: 0, isSent: false, ...unlisted });
    });
  }

  async close(): Promise<void> {
    const { client } = this;
    if (this.isOwned) {
      const hasQuit = this.isReady && (await this.request(() => client.quit()).catch(() => false));
      // After a QUIT, one of ioredis for Sentinel is still connected to the sentinels.
      if (!hasQuit || !client.isCluster) client.disconnect();
      // Errors of a connection that is going away concern nobody.
      client.on('error', () => undefined);
      client.off('error', this.onError);
    }
    this.isClosed = true;
    this.stopListening();
    this.requests.stop();
    for (const request of this.requests.open) this.fail(request, closed());
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
    if (!this.client.isCluster) return;
    this.client.on('-node', this.onNodeGone);
    this.client.on('node error', this.onNodeError);
  }

  private stopListening(): void {
    this.client.off('close', this.onClose);
    this.client.off('-node', this.onNodeGone);
    this.client.off('node error', this.onNodeError);
    this.isListening = false;
  }

  private dispatch(request: RedisRequest, isWhole = false): void {
    if (this.astray && !request.mayBeLate) return this.fail(request, this.astray);
    if (!this.isOwned && !this.isChecked) this.checkDatabase();
    request.isSent = true;
    request.nodes = nodesOf(this.client, request.key);
    let sending: Promise<unknown>;
    try {
      sending = request.send(this.client, isWhole);
    } catch (fault) {
      return this.fail(request, storeErrorOf(fault));
    }
    sending.then(
      (reply) => {
        if (this.astray && !request.mayBeLate) this.fail(request, this.astray);
        else if (this.end(request)) request.answered(reply);
      },
      (cause: unknown) => {
        // Not for a request that is over: its caller may have asked for the opposite since.
        const isUnknown = !isWhole && request.list && String((cause as Error | undefined)?.message).startsWith('NOSCRIPT');
        if (isUnknown) this.dispatch(request, true);
        else {
          const error = storeErrorOf(cause, this.client.isCluster);
          if (isRedirection(cause) && !this.client.isCluster) this.misled = error;
          this.fail(request, error);
        }
      },
    );
  }

  /** A lent client of ioredis goes on where its SELECT has failed. What is asked is answered before the request behind it. */
  private checkDatabase(): void {
    this.isChecked = true;
    const { condition } = this.client as { condition?: { select?: number } };
    const chosen = condition?.select;
    if (!chosen) return;
    const check = (info: unknown): void => void (this.astray = strayed(chosen, info));
    this.client.call('CLIENT', 'INFO').then(check, () => undefined);
  }

  private fail(request: RedisRequest, error: StoreError): void {
    if (!this.end(request)) return;
    if (request.command && !request.mayBeLate) recall(request.command);
    request.failed(error);
  }

  /** False: it was over already. What is given up in the background once the store is closed leaves no listener at a client that lives on. */
  private end(request: RedisRequest): boolean {
    if (!this.requests.end(request)) return false;
    if (!request.isSent) this.stopWaiting(request);
    if (this.isClosed && this.requests.open.size === 0) this.stopListening();
    return true;
  }

  private wait(request: RedisRequest): void {
    const { client } = this;
    const hasEnded = client.status === 'end';
    if (hasEnded && !this.isKept && !hasGivenUp(client)) return this.fail(request, closed());
    if (this.unsent.size === 0) {
      client.on('ready', this.onReady);
      client.on('end', this.onEnd);
      if (!this.isOwned) client.on('error', this.onError);
    }
    this.unsent.add(request);
    if ((hasEnded && this.isKept) || client.status === 'wait') this.connect();
    if (this.lent?.client.status === 'wait') this.lent.connect();
  }

  private stopWaiting(request: RedisRequest): void {
    if (!this.unsent.delete(request) || this.unsent.size > 0) return;
    this.client.off('ready', this.onReady);
    this.client.off('end', this.onEnd);
    if (!this.isOwned) this.client.off('error', this.onError);
  }

  private timedOut(isUnsent: boolean): StoreError {
    const cause = this.lastError;
    if (isUnsent && !this.isOwned && hasGivenUp(this.client)) {
      for (const broke of this.breakListeners) broke(GIVEN_UP);
      return unsent(`Redis: ${GIVEN_UP}.`, cause);
    }
    if (isUnsent) return unsent(`Redis is not connected within ${this.requestTimeout} ms.`, cause);
    return new StoreError(`Redis did not answer within ${this.requestTimeout} ms.`, { transient: true, cause });
  }

  private readonly onReady = (): void => {
    this.lastError = undefined;
    for (const request of [...this.unsent]) {
      this.stopWaiting(request);
      this.dispatch(request);
    }
  };

  /** A client of our own may end by itself: one of ioredis for Sentinel does when it learns of a failover while it connects. */
  private get isKept(): boolean {
    return this.isOwned && !this.isClosed;
  }

  private connect(): void {
    detached(() => this.client.connect()).catch(this.onError);
  }

  private readonly onEnd = (): void => {
    if (hasGivenUp(this.client) && !this.isOwned) return;
    if (!this.isKept) return this.failUnsent(closed());
    after(RECONNECT_DELAY, () => {
      if (this.isKept && this.unsent.size > 0 && this.client.status === 'end') this.connect();
    }).unref();
  };

  private readonly onClose = (): void => {
    this.misled = this.astray = undefined;
    this.isChecked = false;
    for (const broke of this.breakListeners) broke();
    this.failSent(() => true);
  };

  /** The others answer what they were asked. Those that a request was sent on to are known by the slots of now. */
  private readonly onNodeGone = (gone: unknown): void => {
    const { host, port } = (gone as RedisClient).options!;
    const node = `${host}:${port}`;
    this.failSent((request) => request.nodes?.[0] === node || nodesOf(this.client, request.key)?.[0] === node);
  };

  private failSent(isConcerned: (request: RedisRequest) => boolean): void {
    const error = new StoreError('The connection to Redis broke before the reply came.', { transient: true, cause: this.lastError });
    for (const request of this.requests.open) if (request.isSent && isConcerned(request)) this.fail(request, error);
  }

  /** A refused log-in is not mended by waiting for the next one. */
  private readonly onError = (cause: unknown): void => {
    this.lastError = cause;
    const error = storeErrorOf(cause);
    if (isOfSelect(cause)) this.astray = error;
    if (!error.transient) this.failUnsent(error);
  };

  private readonly onNodeError = (cause: unknown): void => void (this.lastError = cause);

  private failUnsent(error: StoreError): void {
    for (const request of [...this.unsent]) this.fail(request, error);
  }
}
