import { StoreError } from '../../../core/model/errors.js';
import { RequestDeadlines } from '../../../core/store/request-deadlines.js';
import { StoreWarnings } from '../../../core/store/store-warnings.js';
import { after, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { senderTo } from './redis.pipelines.js';
import type { RedisRequest } from './redis.request.js';
import { ConnectionFacts } from './connection.facts.js';
import { disconnect, hasGivenUp, isReady, nodeOf, nodesOf, type RedisClient, usesTls } from './redis.client.js';
import { asUnsent, closed, cutOff, GIVEN_UP, isAnswer, isOfSelect, isRedirection, notConnected, storeErrorOf } from './redis.errors.js';
import { recall, type ScriptSender } from './script.sender.js';
import { UnsentRequests } from './unsent.requests.js';

/** Milliseconds until a client that has ended is connected again. */
const RECONNECT_DELAY = 50;

/** Sends requests over one client: each is answered or rejected in time, and nothing is queued for a server that is away. */
export class RedisConnection {
  readonly keyPrefix: string;
  private readonly requests: RequestDeadlines<RedisRequest>;
  private readonly unsent = new UnsentRequests();
  private isListening = false;
  private isClosed = false;
  private isSeparating = false;
  /** The client that is used: that of the app, or one of our own in place of it. */
  client: RedisClient;
  scripts: ScriptSender;
  facts: ConnectionFacts;
  /** When ioredis began to ask the server what it is. */
  private connectedAt = 0;
  readonly warnings: StoreWarnings;
  lastError: unknown;
  /** Called when a connection breaks; with what to do, where a client that is not ours has ended by itself. */
  readonly breakListeners = new Set<(remedy?: string) => void>();

  /**
   * @param replicas that must acknowledge what is written.
   * @param beside the other connection of the store, which may have the same client.
   */
  constructor(
    private readonly given: RedisClient,
    readonly requestTimeout: number,
    private isOwned: boolean,
    private readonly replicas = 0,
    private readonly beside?: RedisConnection,
  ) {
    this.client = given;
    this.scripts = senderTo(given, requestTimeout, replicas);
    this.facts = new ConnectionFacts(given);
    this.warnings = beside?.warnings ?? new StoreWarnings();
    this.keyPrefix = given.options?.keyPrefix ?? '';
    this.requests = new RequestDeadlines(requestTimeout, (request) => {
      this.fail(request, this.timedOut(!request.isSent));
      this.unanswered(request);
    });
    this.listen();
  }

  /** Sends now if the client is connected, so that requests arrive in the order of the calls; else as soon as it is. */
  send(request: RedisRequest): void {
    // A store of a lent client may be used again. What it still releases in the background is no use of it.
    if (!this.isOwned && !request.mayBeLate) this.isClosed = false;
    this.listen();
    this.requests.begin(request);
    this.sendWhenReady(request, request.endsAt - this.requestTimeout);
  }

  /** A request that is no script. @throws {StoreError} within requestTimeout. */
  request(send: (client: RedisClient) => Promise<unknown>, key?: string): Promise<unknown> {
    return new Promise((answered, failed) => {
      this.send({ key, send, answered, failed, endsAt: 0, isSent: false, list: undefined, previous: undefined, next: undefined });
    });
  }

  async close(): Promise<void> {
    const { client } = this;
    if (this.isOwned) {
      const hasQuit = isReady(client) && (await this.request(() => client.quit()).catch(() => false));
      // After a QUIT, one of ioredis for Sentinel is still connected to the sentinels.
      if (!hasQuit || !client.isCluster) disconnect(client);
      // Errors of a connection that is going away concern nobody.
      client.on('error', () => undefined);
    }
    this.isClosed = true;
    this.stopListening();
    for (const request of this.requests.open) this.fail(request, cutOff(!request.isSent));
    this.given.off('close', ignored);
    if (client === this.given) this.facts = this.facts.ofNext();
    else this.use(this.given, false);
  }

  private use(client: RedisClient, isOwned: boolean): void {
    this.client = client;
    this.isOwned = isOwned;
    this.scripts = senderTo(client, this.requestTimeout, this.replicas);
    this.facts = new ConnectionFacts(this.client);
  }

  private listen(): void {
    if (this.isListening) return;
    this.isListening = true;
    for (const [event, listener] of this.listeners) this.client.on(event, listener);
  }

  private stopListening(): void {
    for (const [event, listener] of this.listeners) this.client.off(event, listener);
    this.isListening = false;
  }

  private get listeners(): [event: string, listener: (...args: unknown[]) => void][] {
    const all: typeof this.listeners = [['close', this.onClose]];
    // Without a listener ioredis prints each error. The owner of a lent client decides on that.
    if (this.isOwned) all.push(['connect', this.onConnect], ['error', this.onError]);
    // A Cluster client sends again by itself what a node did not answer: it shows that only by this.
    if (this.client.isCluster) all.push(['-node', this.onNodeGone], ['node error', this.onNodeError]);
    return all;
  }

  private sendWhenReady(request: RedisRequest, at?: number): void {
    request.isSent = false;
    if (isReady(this.client) && !this.isShared) this.dispatch(request, at);
    else this.wait(request);
  }

  private dispatch(request: RedisRequest, at = now()): void {
    const { client, facts } = this;
    if (facts.astray && !request.mayBeLate) return this.fail(request, asUnsent(facts.astray));
    if (!this.isOwned) facts.checkDatabase();
    request.isSent = true;
    request.nodes = nodesOf(client, request.key);
    const node = nodeOf(request);
    const isWhole = facts.asked(node, request.sha, at);
    let sending: Promise<unknown>;
    try {
      sending = request.send(client, isWhole);
    } catch (fault) {
      return this.fail(request, storeErrorOf(fault));
    }
    sending.then(
      (reply) => {
        facts.answered(node, isWhole ? request.sha : undefined);
        if (facts.astray && !request.mayBeLate) this.fail(request, facts.astray);
        else if (this.end(request)) request.answered(reply);
      },
      (cause: unknown) => {
        if (isAnswer(cause)) facts.answered(node);
        // Not for a request that is over: its caller may have asked for the opposite since.
        const isUnknown = !isWhole && request.list && String((cause as Error | undefined)?.message).startsWith('NOSCRIPT');
        if (isUnknown) {
          facts.forgot(node, request.sha!);
          this.sendWhenReady(request);
        } else {
          const error = storeErrorOf(cause, client.isCluster);
          if (isRedirection(cause) && !client.isCluster) Object.assign(facts, { misled: error, isMisledNextTime: !isReady(client) });
          if (request.list) this.unanswered(request);
          this.fail(request, error);
        }
      },
    );
  }

  /** A request has had no answer. Where nothing at all comes, the connection may be half open, or be kept busy by the app. */
  private unanswered(request: RedisRequest): void {
    const { client, facts, isOwned } = this;
    const since = request.isSent ? facts.silentSince(nodeOf(request)) : this.connectedAt;
    if (since === undefined || now() < since + this.requestTimeout) return;
    // ioredis ends the connections to the nodes of a Cluster of our own by itself.
    if (isOwned && !client.isCluster && (request.isSent || client.status === 'connect')) facts.endSilent();
    else if (!isOwned && request.isSent && !this.isClosed) void this.replace(request, since);
  }

  /** Goes on over a duplicate of a silent client until the store is closed. */
  private async replace(request: RedisRequest, since: number): Promise<void> {
    const duplicate = await (await import('./duplicates.js')).duplicateOfSilent(this, request, since);
    if (!duplicate) return;
    // node-redis drops what it has not written yet when its connection breaks, but only while somebody listens.
    this.given.on('close', ignored);
    this.onClose();
    this.moveTo(duplicate);
  }

  /** A WAIT delays all that is sent over the same connection. A Cluster client has one to each node. */
  private get isShared(): boolean {
    return this.client === this.beside?.given && !this.client.isCluster;
  }

  /** Goes on over a duplicate of a client that is shared, in the same database, until the store is closed. */
  private async separate(): Promise<void> {
    if (this.isSeparating) return;
    this.isSeparating = true;
    const making = import('./duplicates.js').then(({ duplicateBeside }) => duplicateBeside(this.beside!));
    const duplicate = await making.catch(this.onError);
    this.isSeparating = false;
    if (duplicate && this.unsent.size > 0) this.moveTo(duplicate);
  }

  private moveTo(client: RedisClient): void {
    const waiting = this.unsent.take();
    this.stopListening();
    this.use(client, true);
    this.listen();
    for (const request of waiting) this.sendWhenReady(request);
  }

  private fail(request: RedisRequest, error: StoreError): void {
    if (!this.end(request)) return;
    if (request.command) recall(request.command);
    request.failed(error);
  }

  /** False: it was over already. What is given up in the background once the store is closed leaves no listener at a client that lives on. */
  private end(request: RedisRequest): boolean {
    if (!this.requests.end(request)) return false;
    if (!request.isSent) this.unsent.delete(request);
    if (this.isClosed && this.requests.open.size === 0) this.stopListening();
    return true;
  }

  private wait(request: RedisRequest): void {
    const { client } = this;
    const hasEnded = client.status === 'end';
    if (hasEnded && !this.isKept && !hasGivenUp(client)) return this.fail(request, closed());
    this.unsent.add(request, client, { ready: this.onReady, end: this.onEnd, ...(!this.isOwned && { error: this.onError }) });
    if (this.isShared) void this.separate();
    else if ((hasEnded && this.isKept) || client.status === 'wait') this.connect();
  }

  private timedOut(isUnsent: boolean): StoreError {
    const cause = this.lastError;
    if (isUnsent && !this.isOwned && hasGivenUp(this.client)) {
      for (const broke of this.breakListeners) broke(GIVEN_UP);
      return new StoreError(`Redis: ${GIVEN_UP}.`, { transient: true, isUnsent: true, cause });
    }
    if (isUnsent) return notConnected(this.requestTimeout, cause, this.facts.hasAnswered, usesTls(this.client));
    return new StoreError(`Redis did not answer within ${this.requestTimeout} ms.`, { transient: true, cause });
  }

  private readonly onReady = (): void => {
    this.lastError = undefined;
    if (this.isShared) return void this.separate();
    for (const request of this.unsent.take()) this.dispatch(request);
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

  private readonly onConnect = (): void => void (this.connectedAt = now());

  private readonly onClose = (): void => {
    this.facts = this.facts.ofNext();
    // A lent client of ioredis does not say that as an error.
    if (this.unsent.size > 0) this.lastError ??= new Error('Connection is closed.');
    for (const broke of this.breakListeners) broke();
    this.failSent(() => true);
  };

  /** The others answer what they were asked. Those that a request was sent on to are known by the slots of now. */
  private readonly onNodeGone = (gone: unknown): void => {
    this.facts = this.facts.ofNext();
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
    if (isOfSelect(cause)) this.facts.astray = error;
    if (!error.transient) this.failUnsent(error);
  };

  private readonly onNodeError = (cause: unknown): void => void (this.lastError = cause);

  private failUnsent(error: StoreError): void {
    for (const request of this.unsent.take()) this.fail(request, asUnsent(error));
  }
}

function ignored(): void {}
