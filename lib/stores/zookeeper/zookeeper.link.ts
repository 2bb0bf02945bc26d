import { StoreError } from '../../core/model/errors.js';
import { after, isSettledWithin } from '../../core/util/clock.js';
import { CONNECTED, driver, storeErrorOf, type ZookeeperAuth, type ZookeeperClient } from './zookeeper.client.js';

/** Milliseconds after which the servers forget a session. Nothing depends on it. */
const SESSION = 10_000;
/** Milliseconds until the client tries its servers again, at most. */
const SPIN = 100;
/** Milliseconds until a connection that does not end is destroyed. */
const GOODBYE = 1000;

/** What is used of the inside of a client of our own. */
interface Inside {
  readonly connectionManager: {
    socket?: { destroy(): void; unref(): void };
    connectTimeout: number;
    connectTimeoutHandler?: NodeJS.Timeout;
    connect(): void;
    onSocketData(data: Buffer): void;
  };
}

/** A client, and what we have asked it. */
export abstract class ZookeeperLink {
  /** What rejects the requests under way, in the order in which they were sent. */
  readonly pending = new Set<(error: StoreError) => void>();
  /** When a request was sent that was not answered in time, if there was no answer since. */
  doubtedAt = Infinity;

  constructor(readonly client: ZookeeperClient) {}

  get isConnected(): boolean {
    return this.client.getState().code === CONNECTED;
  }

  /** Whether it is connected within so many milliseconds. */
  async isConnectedWithin(timeout: number): Promise<boolean> {
    if (this.isConnected) return true;
    let changed!: () => void;
    const connecting = new Promise<void>((resolve) => this.client.on('state', (changed = () => this.isConnected && resolve())));
    await isSettledWithin(timeout, connecting);
    this.client.removeListener('state', changed);
    return this.isConnected;
  }

  /** It is not used any more. Resolves when its session has ended, or hardly will. */
  abstract end(): Promise<unknown>;
}

/** A client of the user, which connects and ends as the user says. */
export class LentLink extends ZookeeperLink {
  /** @param broke is called when its connection breaks. */
  constructor(
    client: ZookeeperClient,
    private readonly broke: () => void,
  ) {
    super(client);
    client.on('state', this.changed);
  }

  end(): Promise<unknown> {
    this.client.removeListener('state', this.changed);
    return Promise.resolve();
  }

  private readonly changed = (): void => {
    if (!this.isConnected) this.broke();
  };
}

/**
 * A client of our own, for one connection. By itself it would connect again for ever, which keeps the process alive, and send what was asked long ago.
 * Some of its faults are mended from inside.
 */
export class OwnLink extends ZookeeperLink {
  private readonly inside: Inside['connectionManager'];
  private isOver = false;

  static async open(hosts: string, auth: readonly ZookeeperAuth[], requestTimeout: number, broke: (link: OwnLink) => void): Promise<OwnLink> {
    const { createClient } = await driver();
    const client = createClient(hosts, { sessionTimeout: SESSION, spinDelay: SPIN });
    for (const { scheme, auth: text } of auth) client.addAuthInfo(scheme, Buffer.from(text));
    return new OwnLink(client, requestTimeout, broke);
  }

  /** @param broke is called when its connection breaks. */
  private constructor(client: ZookeeperClient, requestTimeout: number, broke: (link: OwnLink) => void) {
    super(client);
    const inside = (this.inside = (client as unknown as Inside).connectionManager);
    // A server that does not answer leaves time for the next one.
    inside.connectTimeout = Math.ceil(requestTimeout / 2);
    const receive = inside.onSocketData;
    inside.onSocketData = (data) => {
      try {
        receive.call(inside, data);
      } catch (error) {
        this.failed(error as Error);
      }
    };
    client.on('state', () => {
      if (!this.isConnected) return broke(this);
      inside.connect = () => undefined;
      // An idle connection does not keep the process alive.
      inside.socket?.unref();
      if (this.isOver) void this.end();
    });
    client.connect();
  }

  async end(): Promise<void> {
    const { client, inside, isConnected } = this;
    this.isOver = true;
    inside.connect = () => undefined;
    clearTimeout(inside.connectTimeoutHandler);
    if (!isConnected) {
      inside.socket?.destroy();
      // It may be about to try the next server.
      after(2 * SPIN, () => inside.socket?.destroy());
      return;
    }
    const ended = new Promise<void>((resolve) => client.on('state', () => resolve()));
    client.close();
    if (!(await isSettledWithin(GOODBYE, ended))) inside.socket?.destroy();
  }

  /** The client throws at a code that it does not know. Nobody would catch it, and its other replies are lost. */
  private failed(error: Error): void {
    const code = /^Unknown code: (-\d+)$/.exec(error.message)?.[1];
    const [first] = this.pending;
    first?.(code === undefined ? new StoreError(`ZooKeeper: ${error.message}`, { transient: true, cause: error }) : storeErrorOf({ code: Number(code) }));
    this.inside.socket?.destroy();
  }
}
