import { StoreError } from '../../../core/model/errors.js';
import { RequestDeadlines } from '../../../core/store/request-deadlines.js';
import { after, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { disconnect, isReady, nodesOf, type RedisClient, usesTls } from './redis.client.js';
import { asUnsent, isAnswer, isOfSelect, isRedirection, notConnected, storeClosed, storeErrorOf } from './redis.errors.js';
import { recall, senderTo } from './redis.pipelines.js';
import type { RedisRequest, ScriptSender } from './redis.request.js';

/** Milliseconds until a client that has ended is connected again. */
const RECONNECT_DELAY = 50;

/** Knowledge of the server behind one connection. It says nothing of the next one, which may lead to another server. */
interface ServerFacts {
  /** Set once the server is known as one node of several: some keys would be granted by luck. */
  misled?: StoreError;
  /** Set where the connection is in another database than the one that was chosen, where other apps may be: nothing is done there. */
  astray?: StoreError;
  /** Since when it was asked, and has answered nothing. */
  silentSince?: number | undefined;
}

/**
 * Sends requests over a client of ours: each is answered or rejected in time, and nothing is queued for a server that is away.
 *
 * | what happens to a request | what becomes of it |
 * |---|---|
 * | the client is not connected, or the store is closed | it waits, and makes it connect; it fails |
 * | the connection is in another database | it fails; but what may be late is sent |
 * | it is answered | that is the answer |
 * | the server does not know its script | it is sent once more, whole |
 * | it is refused | it fails; by a node of a Cluster that was taken for one server: later acquires are not sent either |
 * | its connection breaks, or its node leaves the Cluster | it fails: what was done is unknown |
 * | its time is over | it fails; if nothing was answered for so long, the connection is ended |
 */
export class RedisConnection {
  readonly keyPrefix: string;
  readonly scripts: ScriptSender;
  /** Called when a connection breaks. */
  readonly breakListeners = new Set<() => void>();
  private readonly requests: RequestDeadlines<RedisRequest>;
  /** They wait until the client is connected. */
  private readonly unsent = new Set<RedisRequest>();
  private isClosed = false;
  private lastError: unknown;
  /** Whether anything was answered over this connection or one before: it is a Redis. */
  private hasAnswered = false;
  facts: ServerFacts = {};

  /** @param replicas that must acknowledge what is written. */
  constructor(
    readonly client: RedisClient,
    readonly requestTimeout: number,
    replicas = 0,
  ) {
    this.scripts = senderTo(client, requestTimeout, replicas);
    this.keyPrefix = client.options.keyPrefix ?? '';
    this.requests = new RequestDeadlines(requestTimeout, (request) => {
      this.fail(request, this.timedOut(request));
      this.endIfSilent();
    });
    client.on('connect', this.onConnect);
    client.on('ready', this.onReady);
    client.on('close', this.onClose);
    client.on('end', this.onEnd);
    client.on('error', this.onError);
    // A Cluster client sends again by itself what a node did not answer: it shows that only by this.
    client.on('-node', this.onNodeGone);
    client.on('node error', (cause) => (this.lastError = cause));
  }

  /** Sends now if the client is connected, so that requests arrive in the order of the calls; else as soon as it is. */
  send(request: RedisRequest): void {
    this.requests.begin(request);
    if (isReady(this.client)) this.dispatch(request, request.endsAt - this.requestTimeout);
    else this.wait(request);
  }

  /** A request that is no script. @throws {StoreError} within requestTimeout. */
  request(send: (client: RedisClient) => Promise<unknown>, key?: string): Promise<unknown> {
    return new Promise((answered, failed) => {
      this.send({ key, send, answered, failed, endsAt: 0, isSent: false, list: undefined, previous: undefined, next: undefined });
    });
  }

  async close(): Promise<void> {
    const { client } = this;
    const hasQuit = isReady(client) && (await this.request(() => client.quit()).catch(() => false));
    // After a QUIT, one of ioredis for Sentinel is still connected to the sentinels.
    if (!hasQuit || !client.isCluster) disconnect(client);
    this.isClosed = true;
    for (const request of this.requests.open) this.fail(request, storeClosed(!request.isSent));
  }

  private dispatch(request: RedisRequest, at: number, isWhole = false): void {
    const { client, facts } = this;
    if (facts.astray && !request.mayBeLate) return this.fail(request, asUnsent(facts.astray));
    request.isSent = true;
    request.nodes = nodesOf(client, request.key);
    facts.silentSince ??= at;
    let sending: Promise<unknown>;
    try {
      sending = request.send(client, isWhole);
    } catch (fault) {
      return this.fail(request, storeErrorOf(fault));
    }
    sending.then(
      (reply) => {
        this.heard(facts);
        if (facts.astray && !request.mayBeLate) this.fail(request, facts.astray);
        else if (this.end(request)) request.answered(reply);
      },
      (cause: unknown) => {
        if (isAnswer(cause)) this.heard(facts);
        // Not for a request that is over: its caller may have asked for the opposite since.
        if (!isWhole && request.list && isUnknown(cause)) return this.sendWhole(request);
        const error = storeErrorOf(cause, client.isCluster);
        if (isRedirection(cause) && !client.isCluster) facts.misled = error;
        // A client may have a limit of its own.
        this.endIfSilent();
        this.fail(request, error);
      },
    );
  }

  /** The server does not know the script of the request. */
  private sendWhole(request: RedisRequest): void {
    if (isReady(this.client)) this.dispatch(request, now(), true);
    else this.wait(request);
  }

  private heard(facts: ServerFacts): void {
    facts.silentSince = undefined;
    this.hasAnswered = true;
  }

  /** The client of a Cluster ends silent connections to its nodes by itself. */
  private endIfSilent(): void {
    const { client, facts } = this;
    if (facts.silentSince === undefined || now() < facts.silentSince + this.requestTimeout || client.isCluster) return;
    // Once: it may take ioredis a moment, and it adds a listener each time that it is asked.
    facts.silentSince = undefined;
    client.disconnect(true);
  }

  private fail(request: RedisRequest, error: StoreError): void {
    if (!this.end(request)) return;
    if (request.command) recall(request.command);
    request.failed(error);
  }

  /** False: it was over already. */
  private end(request: RedisRequest): boolean {
    this.unsent.delete(request);
    return this.requests.end(request);
  }

  private wait(request: RedisRequest): void {
    if (this.isClosed) return this.fail(request, storeClosed());
    const { status } = this.client;
    request.isSent = false;
    this.unsent.add(request);
    if (status === 'wait' || status === 'end') this.connect();
  }

  private timedOut({ isSent }: RedisRequest): StoreError {
    const { requestTimeout, lastError: cause, hasAnswered, client } = this;
    if (!isSent) return notConnected(requestTimeout, cause, hasAnswered, usesTls(client));
    return new StoreError(`Redis did not answer within ${requestTimeout} ms.`, { transient: true, cause });
  }

  private connect(): void {
    detached(() => this.client.connect()).catch(this.onError);
  }

  /** ioredis asks the server at once what it is. */
  private readonly onConnect = (): void => {
    if (!this.client.isCluster) this.facts.silentSince = now();
  };

  private readonly onReady = (): void => {
    this.lastError = this.facts.silentSince = undefined;
    for (const request of this.unsent) {
      this.unsent.delete(request);
      this.dispatch(request, now());
    }
  };

  private readonly onClose = (): void => {
    this.facts = {};
    // Where a server ends each new connection, ioredis does not say that as an error.
    if (this.unsent.size > 0) this.lastError ??= new Error('Connection is closed.');
    for (const broke of this.breakListeners) broke();
    this.failSent(() => true);
  };

  /** A client may end by itself: one of ioredis for Sentinel does when it learns of a failover while it connects. */
  private readonly onEnd = (): void => {
    if (this.isClosed) return this.failUnsent(storeClosed());
    after(RECONNECT_DELAY, () => {
      if (!this.isClosed && this.unsent.size > 0 && this.client.status === 'end') this.connect();
    }).unref();
  };

  /** The others answer what they were asked. Those that a request was sent on to are known by the slots of now. */
  private readonly onNodeGone = (gone: unknown): void => {
    const { host, port } = (gone as RedisClient).options;
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
    if (isOfSelect(cause)) this.facts.astray = error;
    if (!error.transient) this.failUnsent(error);
  };

  private failUnsent(error: StoreError): void {
    for (const request of this.unsent) this.fail(request, asUnsent(error));
  }
}

function isUnknown(cause: unknown): boolean {
  return String((cause as Error | undefined)?.message).startsWith('NOSCRIPT');
}
