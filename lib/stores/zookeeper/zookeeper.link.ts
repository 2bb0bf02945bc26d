import { StoreError } from '../../core/model/errors.js';
import { checkClient, loadClient } from '../../core/store/check-client.js';
import { after, isSettledWithin, now } from '../../core/util/clock.js';
import { CONNECTED, storeErrorOf, type ZookeeperAuth, type ZookeeperClient } from './zookeeper.client.js';

/** Milliseconds after which the servers forget a session, and after which a client of our own that has got none is given up. */
const SESSION = 10_000;
/** Milliseconds until the client tries the next server, when it has tried all of them once; twice as many each time. */
const PAUSE = 100;
const LONGEST_PAUSE = 1000;
/** Milliseconds until a connection that does not end is destroyed. */
const GOODBYE = 1000;

/** The used part of the inside of a client of our own. */
interface Inside {
  readonly socket?: { destroy(): void; unref(): void };
  readonly connectTimeoutHandler?: NodeJS.Timeout;
  readonly servers: readonly unknown[];
  connectTimeout: number;
  connect(): void;
  findNextServer(go: (server: unknown) => void): void;
  onSocketData(data: Buffer): void;
}

/** A client, and what we have asked it. One that is lent connects and ends as the user says. */
export class ZookeeperLink {
  /** Functions that reject the requests under way, in the order in which they were sent. */
  readonly pending = new Set<(error: StoreError) => void>();
  /** When the last answer came. */
  heardAt = now();
  private readonly waiting = new Set<() => void>();
  private inside: Inside | undefined;
  private next: NodeJS.Timeout | undefined;
  private attempt: NodeJS.Timeout | undefined;
  private limit: NodeJS.Timeout | undefined;
  private isEnded = false;

  /** @param broke is called when its connection breaks. */
  constructor(
    readonly client: ZookeeperClient,
    private readonly broke: (link: ZookeeperLink) => void,
  ) {
    client.on('state', this.changed);
  }

  /**
   * A client of our own, for one connection. By itself it would connect again and again, which keeps the process alive, with half a reply of before in
   * its buffer, and send what was asked long ago.
   *
   * @throws {LockConfigError} when it is missing or too old.
   */
  static async open(
    hosts: string,
    auth: readonly ZookeeperAuth[],
    timeout: number,
    broke: (link: ZookeeperLink) => void,
  ): Promise<ZookeeperLink> {
    // Loaded when it is needed: an app that passes a client may have it under another name.
    const { default: zookeeper } = await loadClient('zookeeperStore', 'node-zookeeper-client', () => import('node-zookeeper-client'));
    const client = zookeeper.createClient(hosts, { sessionTimeout: SESSION, spinDelay: 0 });
    checkClient('zookeeperStore', 'node-zookeeper-client', 'transaction' in client);
    for (const { scheme, auth: text } of auth) client.addAuthInfo(scheme, Buffer.from(text));
    const link = new ZookeeperLink(client, broke);
    link.limit = after(SESSION, () => broke(link)).unref();
    link.mend((client as typeof client & { readonly connectionManager: Inside }).connectionManager, timeout);
    client.connect();
    return link;
  }

  get isConnected(): boolean {
    return this.client.getState().code === CONNECTED;
  }

  /** Whether it is connected within so many milliseconds. */
  async isConnectedWithin(timeout: number): Promise<boolean> {
    if (this.isConnected) return true;
    let go = (): void => undefined;
    await isSettledWithin(timeout, new Promise<void>((resolve) => this.waiting.add((go = resolve))));
    // A client that is lent may never be connected again.
    this.waiting.delete(go);
    return this.isConnected;
  }

  /** It is not used any more. Resolves when its session has ended, or hardly will. */
  async end(): Promise<void> {
    const { client, inside } = this;
    this.isEnded = true;
    for (const timer of [this.next, this.attempt, this.limit]) clearTimeout(timer);
    client.removeListener('state', this.changed);
    if (!inside) return;
    inside.connect = () => undefined;
    clearTimeout(inside.connectTimeoutHandler);
    if (this.isConnected) {
      const ended = new Promise<void>((resolve) => client.on('state', resolve));
      client.close();
      await isSettledWithin(GOODBYE, ended);
    }
    inside.socket?.destroy();
  }

  private mend(inside: Inside, timeout: number): void {
    this.inside = inside;
    // A server that does not answer leaves time for the next one.
    inside.connectTimeout = Math.ceil(timeout / 2);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with it below
    const { onSocketData: receive, findNextServer: find } = inside;
    // By itself it would try some hundred times a second where something else listens.
    const { length } = inside.servers;
    let tries = -length;
    inside.findNextServer = (go) => {
      clearTimeout(this.attempt);
      find.call(inside, (server) => {
        const pause = tries++ < 0 ? 0 : Math.min(PAUSE * 2 ** (tries - 1), LONGEST_PAUSE);
        // It waits without end for the answer of a server. One that hangs is given up soon, and a busy ensemble gets more time in each round.
        const patience = timeout * 2 ** Math.max(0, Math.ceil(tries / length));
        const attempt = (): void => {
          go(server);
          this.attempt = after(patience, () => inside.socket?.destroy());
        };
        if (!this.isEnded) this.next = after(pause * (0.5 + Math.random() / 2), attempt);
      });
    };
    inside.onSocketData = (data) => {
      try {
        receive.call(inside, data);
      } catch (error) {
        // It throws at a code that it does not know. Nobody would catch that, and its other replies are lost.
        const { message } = error as Error;
        const code = /^Unknown code: (-\d+)$/.exec(message)?.[1];
        const [first] = this.pending;
        first?.(storeErrorOf(code === undefined ? new StoreError(`ZooKeeper: ${message}`, { transient: true }) : { code: Number(code) }));
        inside.socket?.destroy();
      }
    };
  }

  private readonly changed = (): void => {
    if (!this.isConnected) return this.broke(this);
    for (const timer of [this.attempt, this.limit]) clearTimeout(timer);
    if (this.inside) {
      this.inside.connect = () => undefined;
      // An idle connection does not keep the process alive.
      this.inside.socket?.unref();
    }
    for (const go of this.waiting) go();
  };
}
