import * as http from 'node:http';
import * as https from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { StoreError } from '../../core/model/errors.js';
import { detached } from '../../core/util/detached.js';
import { foreign, messageIn, objectIn, Refusal, refusalOf, replyIn, storeErrorOf } from './etcd.errors.js';
import { answerTo, linesIn, textIn } from './etcd.http.js';

/** Where there is no alarm, the reply has no header. */
const ALARM = '/v3/maintenance/alarm';

/** A user with a password. */
export interface EtcdAuth {
  username: string;
  password: string;
}

/** Where etcd is. */
export interface EtcdAddress {
  readonly endpoints: readonly string[];
  readonly auth?: EtcdAuth | undefined;
  readonly tls?: SecureContextOptions | undefined;
}

/** etcd by its JSON gateway. Requests go to one endpoint, and after any error to the next one: what is said may be true of one member only. */
export class EtcdClient {
  private readonly agents: readonly [http.Agent, https.Agent];
  private readonly endings = new Set<() => void>();
  /** The endpoint in use. It begins anywhere, so that processes share the load. */
  private current: number;
  private token: Promise<string> | undefined;
  private hasAnswered = false;
  private isClosed = false;
  /** That of each endpoint that has answered: one for all. */
  private readonly clusters = new Map<string, string>();
  /** Called with the cluster that has answered, before the reply is used. */
  onReply: (cluster: string) => void = () => undefined;

  constructor(
    private readonly address: EtcdAddress,
    readonly requestTimeout: number,
  ) {
    this.agents = [new http.Agent({ keepAlive: true }), new https.Agent({ keepAlive: true, ...address.tls })];
    this.current = Math.floor(Math.random() * address.endpoints.length);
  }

  get endpoints(): readonly string[] {
    return this.address.endpoints;
  }

  /**
   * Asks one endpoint, and the next one at once if that one has not taken the request.
   *
   * @param read takes from the reply what is needed. If it throws, the answer is not of etcd.
   * @throws {StoreError} whose outcome is unknown, unless it `isUnsent` or `isRefusal`. Final, if no endpoint may take it later.
   */
  async ask<Reply extends object, Read = Reply>(path: string, body: unknown, read: (reply: Reply) => Read = asIs): Promise<Read> {
    let passing: StoreError | undefined;
    for (let tries = 1; ; tries++) {
      const { endpoint } = this;
      try {
        const compared = (reply: Reply): Read => {
          this.compare(endpoint, reply);
          return read(reply);
        };
        return await this.authorized((token) => this.post(endpoint, path, body, token, compared));
      } catch (cause) {
        const error = storeErrorOf(cause, endpoint);
        this.leave(endpoint);
        if (!error.isUnsent) throw error;
        if (error.transient) passing = error;
        if (tries >= this.endpoints.length) throw passing ?? error;
      }
    }
  }

  /** Asks one endpoint, of whichever cluster. Without a token, unless it wants one: to sign in may need another endpoint, which may be down. */
  async askAt<Reply>(endpoint: string, path: string, body: unknown): Promise<Reply> {
    const ask = (token?: string): Promise<Reply> => this.post<Reply>(endpoint, path, body, token);
    try {
      return await ask().catch((error: unknown) => {
        if (error instanceof Refusal) return this.authorized(ask);
        throw error;
      });
    } catch (cause) {
      throw storeErrorOf(cause, endpoint);
    }
  }

  /**
   * Begins a watch, which does not keep the process alive.
   *
   * @param body the requests for it.
   * @param hear is called with the `result` of each message. If it throws, the message was none, and the watch ends.
   * @param ended is called when there will be no more.
   * @returns what ends it.
   */
  watch(body: string, hear: (result: object) => void, ended: (error: StoreError) => void): () => void {
    const isOver = new AbortController();
    const { endpoint } = this;
    const end = (cause: unknown = new Error('the watch ended')): void => {
      if (isOver.signal.aborted) return;
      isOver.abort();
      this.endings.delete(end);
      this.leave(endpoint);
      ended(storeErrorOf(cause, endpoint));
    };
    this.endings.add(end);
    detached(() => void this.authorized((token) => this.follow(endpoint, body, token, hear, isOver.signal)).then(end, end));
    return () => end();
  }

  close(): void {
    this.isClosed = true;
    for (const end of [...this.endings]) end();
    for (const agent of this.agents) agent.destroy();
  }

  private get endpoint(): string {
    return this.endpoints[this.current]!;
  }

  /** @throws {Refusal} if it is of another cluster than the endpoints before: both would grant the same key. */
  private compare(endpoint: string, { header }: { readonly header?: { readonly cluster_id: string } }): void {
    if (!header) return;
    const { cluster_id: cluster } = header;
    // Its cluster was replaced, as by a restore. So is that of the others.
    if ((this.clusters.get(endpoint) ?? cluster) !== cluster) this.clusters.clear();
    for (const [other, known] of this.clusters) if (known !== cluster) throw new Refusal(`it is of another cluster than ${other}`);
    this.clusters.set(endpoint, cluster);
    this.onReply(cluster);
  }

  /** The next request goes to the next endpoint, unless another one has left this one already. */
  private leave(endpoint: string): void {
    if (this.endpoint === endpoint) this.current = (this.current + 1) % this.endpoints.length;
  }

  /** Signs in again once: a token lasts for minutes, ends with a change of the users, or is forgotten when an endpoint is started again. */
  private async authorized<T>(work: (token: string | undefined) => Promise<T>): Promise<T> {
    const token = this.signIn();
    try {
      return await work(await token);
    } catch (error) {
      if (!token || !(error instanceof Refusal && error.isSignedOut)) throw error;
      if (this.token === token) this.token = undefined;
      return work(await this.signIn());
    }
  }

  private signIn(): Promise<string> | undefined {
    const { auth } = this.address;
    if (!auth || this.token) return this.token;
    const { endpoint } = this;
    const asked = this.post<{ token: unknown }>(endpoint, '/v3/auth/authenticate', { name: auth.username, password: auth.password });
    const got = asked.then((reply) => {
      // It becomes a header.
      if (typeof reply.token === 'string' && /^[!-~]+$/.test(reply.token)) return reply.token;
      throw foreign('no token');
    });
    const token = (this.token = got.catch((cause: unknown) => {
      if (this.token === token) this.token = undefined;
      // Requests to other endpoints may wait for it, too.
      throw storeErrorOf(cause, endpoint);
    }));
    return token;
  }

  /** @param stop ends the request. It is one for a watch. */
  private request(endpoint: string, path: string, token: string | undefined, stop?: AbortSignal): http.ClientRequest {
    // A release that is sent again would open a connection that nobody closes.
    if (this.isClosed) throw new StoreError('etcd: the store is closed', { transient: false, isUnsent: true });
    const url = new URL(path, endpoint);
    const isSafe = url.protocol === 'https:';
    const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: token }) };
    // A watch has a connection of its own: it would take one from the requests. A member that loses its leader ends the watch.
    const options: https.RequestOptions = stop
      ? { agent: false, headers: { ...headers, 'grpc-metadata-hasleader': 'true' }, ...(isSafe && this.address.tls), signal: stop }
      : { agent: isSafe ? this.agents[1] : this.agents[0], headers };
    return (isSafe ? https : http).request(url, { ...options, method: 'POST' });
  }

  private post<Reply, Read = Reply>(
    endpoint: string,
    path: string,
    body: unknown,
    token?: string,
    read: (reply: Reply) => Read = asIs,
  ): Promise<Read> {
    return detached(async () => {
      const request = this.request(endpoint, path, token);
      this.limit(request);
      const response = await answerTo(request.end(JSON.stringify(body))).catch((error: NodeJS.ErrnoException) => {
        // So does an etcd with TLS answer a request without it, and the other way round.
        const isClosed = error.code === 'ECONNRESET' && !this.hasAnswered;
        throw isClosed ? new Error(`${error.message}: it never answered`, { cause: error }) : error;
      });
      this.hasAnswered = true;
      const text = await textIn(response);
      if (response.statusCode !== 200) throw refusalOf(response.statusCode, text);
      const reply = path === ALARM ? objectIn(text) : replyIn(text);
      try {
        return read(reply as Reply);
      } catch (error) {
        throw error instanceof Refusal ? error : foreign(text);
      }
    });
  }

  /** Resolves when the endpoint ends the watch. */
  private async follow(
    endpoint: string,
    body: string,
    token: string | undefined,
    hear: (result: object) => void,
    stop: AbortSignal,
  ): Promise<void> {
    const request = this.request(endpoint, '/v3/watch', token, stop);
    const timer = this.limit(request);
    try {
      const response = await answerTo(request.end(body));
      if (response.statusCode !== 200) throw refusalOf(response.statusCode, await textIn(response));
      clearTimeout(timer);
      response.socket.unref();
      let isHeard = false;
      for await (const line of linesIn(response)) {
        try {
          hear(messageIn(line));
        } catch (cause) {
          // To sign in again is enough only where nothing can have been missed.
          throw isHeard ? storeErrorOf(cause, endpoint) : cause;
        }
        isHeard = true;
      }
    } finally {
      request.destroy();
    }
  }

  private limit(request: http.ClientRequest): NodeJS.Timeout {
    const timer = setTimeout(() => {
      // Something between may have forgotten the idle connections, too: each would make one more request late.
      for (const { freeSockets } of this.agents)
        for (const sockets of Object.values(freeSockets)) for (const each of sockets!) each.destroy();
      request.destroy(new Error(`no answer within ${this.requestTimeout} ms`));
    }, this.requestTimeout);
    request.on('close', () => clearTimeout(timer));
    return timer;
  }
}

function asIs(reply: unknown): never {
  return reply as never;
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function fromBase64(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString();
}

/** The first key after all that begin with this one, encoded. */
export function endOf(start: string): string {
  const bytes = Buffer.from(start);
  bytes[bytes.length - 1]!++;
  return bytes.toString('base64');
}
