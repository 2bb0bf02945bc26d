import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../support/free-port.js';

/** Passes bytes on, whatever they mean: a MySQL server speaks first, and its replies have no common frame. */
export class RawProxy {
  private server: Server | undefined;
  private readonly links = new Set<{ readonly client: Socket; readonly upstream: Socket }>();
  private trap: { readonly match: string; readonly then: 'reset' | 'silence' } | undefined;
  private isBlack = false;
  lost = 0;

  private constructor(
    private readonly target: number,
    readonly port: number,
  ) {}

  static async start(target: number): Promise<RawProxy> {
    const proxy = new RawProxy(target, await freePort());
    await proxy.heal();
    return proxy;
  }

  get connections(): number {
    return this.links.size;
  }

  /** The next request with this text is passed on and answered, and nothing comes back any more. */
  loseReplyTo(match: string, then: 'reset' | 'silence'): void {
    this.trap = { match, then };
  }

  /** Nothing arrives on either side; connections stay open. */
  blackhole(): void {
    this.isBlack = true;
  }

  /** Ends all connections, and refuses new ones. */
  cut(): void {
    this.server?.close();
    this.server = undefined;
    for (const { client } of this.links) client.destroy();
  }

  /** Connections that have lost bytes end. */
  async heal(): Promise<void> {
    if (this.isBlack) for (const { client } of this.links) client.destroy();
    this.isBlack = false;
    if (this.server) return;
    this.server = createServer((client) => this.join(client)).listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  private join(client: Socket): void {
    const upstream = connect(this.target, '127.0.0.1');
    const link = { client, upstream };
    let isLost: 'reset' | 'silence' | undefined;
    this.links.add(link);
    client.on('data', (bytes) => {
      if (this.isBlack || isLost) return;
      if (this.trap && bytes.includes(this.trap.match)) {
        isLost = this.trap.then;
        this.trap = undefined;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (this.isBlack) return;
      if (!isLost) return void client.write(bytes);
      this.lost++;
      if (isLost === 'reset') client.destroy();
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => {
        other.destroy();
        this.links.delete(link);
      });
    }
  }
}
