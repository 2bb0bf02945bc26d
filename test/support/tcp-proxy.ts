import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.js';
import { type Framing, RESP } from './tcp-proxy-framing.js';
import { ProxyLink, type Traffic } from './tcp-proxy-link.js';

/** Where the real server listens. */
export type ProxyTarget = { path: string } | { host?: string; port: number };

export interface ReplyLoss {
  /** how many replies were lost so far */
  readonly lost: number;
}

export interface ReplyLossOptions {
  /** how many replies to lose */
  times?: number;
  /** afterwards the client sees its connection break, or sees it open and silent */
  then?: 'reset' | 'silence';
}

/**
 * A proxy of its own before a server, whose faults are switched while it runs. Faults add up until `heal`.
 * It forwards whole requests and replies only, and a connection that has lost bytes never carries later ones in their place.
 * @param random decides about jitter
 * @param framing how the server's protocol is cut into requests and replies
 */
export async function startProxy(target: ProxyTarget, random = Math.random, framing = RESP): Promise<TcpProxy> {
  const proxy = new TcpProxy(target, await freePort(), random, framing);
  await proxy.listen();
  return proxy;
}

export class TcpProxy {
  #server: Server | undefined;
  readonly #links = new Set<ProxyLink>();
  readonly #traffic: Traffic = passing();

  constructor(
    private target: ProxyTarget,
    readonly port: number,
    private readonly random = Math.random,
    private readonly framing: Framing = RESP,
  ) {}

  /** options for a client */
  get connection(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.port };
  }

  /** open connections of clients */
  get connections(): number {
    return [...this.#links].filter((link) => link.open).length;
  }

  /** all connections that clients have made */
  made = 0;

  /** what did not arrive since the start or the last `heal` */
  get lost(): { requests: number; replies: number } {
    return { requests: this.#traffic.requests.lost, replies: this.#traffic.replies.lost };
  }

  /** The server does what it is asked, and no client hears of it. */
  dropReplies(): void {
    this.#traffic.replies.drop = true;
  }

  /** Nothing that clients send arrives; their connections stay open. */
  dropRequests(): void {
    this.#traffic.requests.drop = true;
  }

  /** Half-open: connections are accepted and stay open, and neither side hears of the other, not even of its end. */
  blackhole(): void {
    this.dropRequests();
    this.dropReplies();
  }

  /** The open connections are half-open from now on, for good: they carry nothing, and neither side hears of an end. New ones are welcome. */
  silence(): void {
    for (const link of this.#links) link.silence();
  }

  /**
   * The next request that matches is forwarded and answered, and its reply is lost; replies to earlier requests still arrive.
   * @param match a text within the request, or a test of its bytes
   */
  dropReplyTo(match: string | ((request: Buffer) => boolean), { times = 1, then = 'reset' }: ReplyLossOptions = {}): ReplyLoss {
    const matches = typeof match === 'string' ? (request: Buffer) => request.includes(match) : match;
    const trap = { matches, times, then, lost: 0 };
    this.#traffic.traps.push(trap);
    return trap;
  }

  /** Each request and each reply, as `direction` says, arrives this much later (milliseconds), in order. */
  delay(ms: number, jitter = 0, direction: 'requests' | 'replies' | 'both' = 'both'): void {
    if (direction !== 'replies') Object.assign(this.#traffic.requests, { delay: ms, jitter });
    if (direction !== 'requests') Object.assign(this.#traffic.replies, { delay: ms, jitter });
  }

  /** Replies wait until `heal`, and arrive then; what nobody has asked for, as a message, arrives at once. */
  holdReplies(): void {
    this.#traffic.replies.isHeld = true;
  }

  /**
   * Holds back what clients send, resets the clients after `hold` milliseconds, and gives the server what they had sent `late` milliseconds after that.
   * Resolves when the clients are reset; new ones are welcome, unless refused.
   */
  async cutLate({ hold, late }: { hold: number; late: number }): Promise<void> {
    const { requests } = this.#traffic;
    const delay = requests.delay;
    requests.delay = hold + late;
    const links = [...this.#links];
    await new Promise((resolve) => setTimeout(resolve, hold));
    for (const link of links) link.resetClient();
    requests.delay = delay;
  }

  /** Connections that are made from now on lead there; those that are open stay where they are. */
  moveTo(target: ProxyTarget): void {
    this.target = target;
  }

  /** New connections get ECONNREFUSED; those that are open go on. */
  refuse(): void {
    const server = this.#server;
    this.#server = undefined;
    server?.close();
  }

  /** Resets all connections; new ones are welcome, unless refused. */
  cut(): void {
    for (const link of this.#links) link.reset();
  }

  /** Ends all faults. Connections that have lost bytes are reset, the others go on. */
  async heal(): Promise<void> {
    Object.assign(this.#traffic, passing());
    for (const link of this.#links) {
      if (link.damaged) link.reset();
      else link.goOn();
    }
    if (!this.#server) await this.listen();
  }

  async close(): Promise<void> {
    this.refuse();
    this.cut();
  }

  async listen(): Promise<void> {
    const server = createServer((client) => this.#join(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.#server = server;
  }

  #join(client: Socket): void {
    this.made++;
    const link = new ProxyLink(client, connect(this.target), this.#traffic, () => this.#links.delete(link), this.random, this.framing);
    this.#links.add(link);
  }
}

function passing(): Traffic {
  const pass = () => ({ drop: false, delay: 0, jitter: 0, isHeld: false, lost: 0 });
  return { requests: pass(), replies: pass(), traps: [] };
}
