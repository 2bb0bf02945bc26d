import * as http from 'node:http';
import * as https from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { messageOf, StoreError } from '../../core/model/errors.js';
import { detached } from '../../core/util/detached.js';

/** Before the request could have left. */
const UNSENT: readonly unknown[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];
/** Codes of gRPC. */
const UNAUTHENTICATED = 16;
const PASSING: readonly unknown[] = [1, 4, 13, 14];
/** Advice about a refusal, by what etcd says. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/database space exceeded/, 'Compact and defragment it, disarm the alarm, and start etcd with --auto-compaction-retention=1h.'],
  [/permission denied/, 'Grant its user readwrite on the prefix: etcdctl role grant-permission <role> readwrite <prefix> --prefix=true.'],
  [/user name is empty/, 'Give "auth". The gateway does not know a user by the name in its certificate.'],
  [/authentication is not enabled/, 'Leave "auth" out, or run etcdctl auth enable.'],
  [/HTTP request to an HTTPS server|never answered/, 'Its endpoints begin with https:// if it has TLS, and with http:// if not.'],
];

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

/** An answer of an endpoint that is no success. */
class Refusal extends Error {
  constructor(
    message: string,
    /** A code of gRPC; `undefined`: it is not from etcd. */
    readonly code: number | undefined,
  ) {
    super(message);
  }
}

/** etcd by its JSON gateway. Requests go to one endpoint; the next one is tried when it does not answer. */
export class EtcdClient {
  private readonly agents: readonly [http.Agent, https.Agent];
  private readonly streams = new Set<http.ClientRequest>();
  /** The endpoint in use. It begins anywhere, so that processes share the load. */
  private current: number;
  private token: Promise<string> | undefined;
  private hasAnswered = false;

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

  /** @throws {StoreError} whose outcome is unknown, unless it `isUnsent` or `isRefusal`. */
  async ask<Reply>(path: string, body: unknown): Promise<Reply> {
    for (let tries = 1; ; tries++) {
      const index = this.current;
      try {
        return await this.authorized((token) => this.post<Reply>(this.endpoints[index]!, path, body, token));
      } catch (cause) {
        const error = storeErrorOf(cause);
        if (error.transient && this.current === index) this.current = (index + 1) % this.endpoints.length;
        if (!error.isUnsent || tries >= this.endpoints.length) throw error;
      }
    }
  }

  /** Asks one endpoint. */
  async askAt<Reply>(endpoint: string, path: string, body: unknown): Promise<Reply> {
    return this.authorized((token) => this.post<Reply>(endpoint, path, body, token)).catch((cause: unknown) => {
      throw storeErrorOf(cause);
    });
  }

  /**
   * Begins a stream, which does not keep the process alive.
   *
   * @param hear is called with the `result` of each message.
   * @param ended is called when there will be no more.
   * @returns what ends it.
   */
  stream<Result>(path: string, body: string, hear: (result: Result) => void, ended: (error: StoreError) => void): () => void {
    let request: http.ClientRequest | undefined;
    let isOver = false;
    const end = (cause: unknown = new Error('the stream ended')): void => {
      if (isOver) return;
      isOver = true;
      if (request) this.streams.delete(request.destroy());
      ended(storeErrorOf(cause));
    };
    const begin = async (): Promise<void> => {
      const token = await this.signIn();
      if (isOver) return;
      request = this.request(this.endpoints[this.current]!, path, token, true);
      this.streams.add(request);
      request.setTimeout(this.requestTimeout, () => end(new Error('no answer'))).on('error', end);
      request.on('response', (response) => {
        request!.setTimeout(0);
        response.socket.unref();
        let rest = '';
        response.setEncoding('utf8').on('data', (data: string) => {
          const lines = (rest + data).split('\n');
          rest = lines.pop()!;
          for (const line of lines) {
            const { result, error } = JSON.parse(line) as { result?: Result; error?: { message: string; grpc_code: number } };
            if (error) return end(new Refusal(error.message, error.grpc_code));
            if (!isOver) hear(result!);
          }
        });
        response.on('error', end).on('close', () => end(response.statusCode === 200 ? undefined : refusalOf(response.statusCode, rest)));
      });
      request.end(body);
    };
    detached(() => void begin().catch(end));
    return () => end();
  }

  close(): void {
    for (const stream of this.streams) stream.destroy();
    for (const agent of this.agents) agent.destroy();
  }

  /** Signs in again once: a token lasts for minutes, and is forgotten when an endpoint is started again. */
  private async authorized<T>(work: (token: string | undefined) => Promise<T>): Promise<T> {
    const token = this.signIn();
    try {
      return await work(await token);
    } catch (error) {
      if (!(error instanceof Refusal && error.code === UNAUTHENTICATED) || !token) throw error;
      if (this.token === token) this.token = undefined;
      return work(await this.signIn());
    }
  }

  private signIn(): Promise<string> | undefined {
    const { auth } = this.address;
    if (!auth || this.token) return this.token;
    const asked = this.post<{ token: string }>(this.endpoints[this.current]!, '/v3/auth/authenticate', {
      name: auth.username,
      password: auth.password,
    });
    const token = (this.token = asked.then((reply) => reply.token));
    token.catch(() => {
      if (this.token === token) this.token = undefined;
    });
    return token;
  }

  private request(endpoint: string, path: string, token: string | undefined, isStream = false): http.ClientRequest {
    const url = new URL(path, endpoint);
    const isSafe = url.protocol === 'https:';
    const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: token }) };
    // A stream of its own: it would take a connection from the requests. A member that loses its leader ends the stream.
    const options: https.RequestOptions = isStream
      ? { method: 'POST', agent: false, headers: { ...headers, 'grpc-metadata-hasleader': 'true' }, ...(isSafe && this.address.tls) }
      : { method: 'POST', agent: isSafe ? this.agents[1] : this.agents[0], headers };
    return isSafe ? https.request(url, options) : http.request(url, options);
  }

  private post<Reply>(endpoint: string, path: string, body: unknown, token?: string): Promise<Reply> {
    return detached(
      () =>
        new Promise<Reply>((resolve, reject) => {
          const request = this.request(endpoint, path, token);
          const parts: Buffer[] = [];
          const timer = setTimeout(() => request.destroy(new Error(`no answer within ${this.requestTimeout} ms`)), this.requestTimeout);
          request
            .on('close', () => clearTimeout(timer))
            .on('error', (error: NodeJS.ErrnoException) => {
              // So does an etcd with TLS answer a request without it, and the other way round.
              const isClosed = error.code === 'ECONNRESET' && !this.hasAnswered;
              reject(isClosed ? new Error(`${error.message}: ${endpoint} never answered`, { cause: error }) : error);
            });
          request.on('response', (response) => {
            this.hasAnswered = true;
            response.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
            response.on('end', () => {
              const text = Buffer.concat(parts).toString();
              try {
                if (response.statusCode !== 200) throw refusalOf(response.statusCode, text);
                resolve(JSON.parse(text) as Reply);
              } catch (error) {
                reject(error);
              }
            });
          });
          request.end(JSON.stringify(body));
        }),
    );
  }
}

function refusalOf(status: number | undefined, text: string): Refusal {
  try {
    const { error, message = error, code } = JSON.parse(text) as { error?: string; message?: string; code?: number };
    if (typeof code === 'number') return new Refusal(String(message), code);
  } catch {
    // It is not from etcd.
  }
  if (status === 404)
    return new Refusal('its JSON gateway is not there: etcd 3.4 or later is needed, without --enable-grpc-gateway=false', undefined);
  return new Refusal(`status ${status}: ${text.trim().slice(0, 200)}`, undefined);
}

function storeErrorOf(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const text = messageOf(cause);
  const advice = ADVICE.find(([pattern]) => pattern.test(text))?.[1];
  const message = `etcd: ${text}${advice === undefined ? '' : `. ${advice}`}`;
  if (cause instanceof Refusal) {
    const transient = PASSING.includes(cause.code);
    return new StoreError(message, { transient, isRefusal: !transient, cause });
  }
  const { code = '' } = cause as NodeJS.ErrnoException;
  // A certificate does not get better by itself, and nothing was sent.
  const isFinal = /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|CERT_)/.test(code);
  return new StoreError(message, { transient: !isFinal, isRefusal: isFinal, isUnsent: isFinal || UNSENT.includes(code), cause });
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function textOf(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString();
}

/** The first key after all that begin with this one, encoded. */
export function endOf(start: string): string {
  const bytes = Buffer.from(start);
  bytes[bytes.length - 1]!++;
  return bytes.toString('base64');
}
