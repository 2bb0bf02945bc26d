import { LockConfigError, StoreError } from '../../core/model/errors.js';
import { after, now } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import {
  codeOf,
  NO_NODE,
  NODE_EXISTS,
  PERSISTENT,
  storeErrorOf,
  type Acl,
  type Done,
  type Stat,
  type ZookeeperAuth,
  type ZookeeperClient,
  type ZookeeperTransaction,
} from './zookeeper.client.js';
import { ZookeeperLink } from './zookeeper.link.js';

/** Where ZooKeeper is, and what is ours there. */
export interface Target {
  /** `undefined`: a client of our own is used, which connects to the hosts. */
  readonly client: ZookeeperClient | undefined;
  readonly hosts: string;
  /** The node above all of ours. */
  readonly root: string;
  readonly auth: readonly ZookeeperAuth[];
  /** Rights to the nodes that we make. `undefined`: anybody may do everything. */
  readonly acl: Acl | undefined;
}

/** Adds one step to a transaction. */
export type Step = (transaction: ZookeeperTransaction) => unknown;

/** The last node that was written, if one was; or the step that failed, so that nothing was changed. */
export type Outcome =
  { readonly isMade: true; readonly stat: Stat | undefined } | { readonly isMade: false; readonly failed: number; readonly code: number };

/**
 * Requests, each with a time limit. Nothing is sent unless the client is connected: it would keep a request, and send it when nobody waits for it any
 * more. It does not notice a silent connection either: after a request during which nothing is answered, a client of our own is replaced.
 */
export class ZookeeperSession {
  private opening: Promise<ZookeeperLink> | undefined;
  private link: ZookeeperLink | undefined;
  private isClosed = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly target: Target,
    readonly requestTimeout: number,
  ) {}

  /** Sends a request. While the client is connected, they are sent in the order in which this is called, and answered in that order. @throws {StoreError} */
  async ask<Results extends readonly unknown[]>(send: (client: ZookeeperClient, done: Done<Results>) => void): Promise<Results> {
    const end = now() + this.requestTimeout;
    const link = await this.connected();
    return new Promise<Results>((resolve, reject) => {
      const sentAt = now();
      const settle = (work: () => void): void => {
        clearTimeout(timer);
        link.pending.delete(fail);
        work();
      };
      const fail = (cause: unknown): void => settle(() => reject(storeErrorOf(cause)));
      const timer = after(Math.max(1, end - sentAt), () => {
        fail(this.late('did not answer'));
        // Where it was sent late, because there was no connection at first, it has not been silent for long.
        after(this.requestTimeout - (end - sentAt), () => link.heardAt < sentAt && this.drop(link)).unref();
      });
      link.pending.add(fail);
      try {
        send(link.client, (error, ...results) => {
          link.heardAt = now();
          if (error) fail(error);
          else settle(() => resolve(results));
        });
      } catch (error) {
        fail(error);
      }
    });
  }

  /** Makes all steps, or none. */
  async commit(steps: readonly Step[]): Promise<Outcome> {
    const [outcome] = await this.ask<[Outcome]>((client, done) => {
      const transaction = client.transaction();
      for (const step of steps) step(transaction);
      transaction.commit((error, results = []) => {
        const failed = results.findIndex(({ err = 0 }) => err !== 0);
        if (error && failed >= 0) done(null, { isMade: false, failed, code: results[failed]!.err! });
        else done(error, { isMade: true, stat: results.findLast(({ stat }) => stat)?.stat });
      });
    });
    return outcome;
  }

  create(path: string, data: string, mode: number): Promise<unknown> {
    return this.ask<[string]>((client, done) => client.create(path, Buffer.from(data), this.target.acl, mode, done));
  }

  /** Makes a node, and those above it. If it is there, it stays as it is. From below: a user may have no rights above. */
  async make(path: string): Promise<void> {
    try {
      await this.create(path, '', PERSISTENT);
    } catch (error) {
      if (codeOf(error) === NODE_EXISTS) return;
      if (codeOf(error) !== NO_NODE || path === '/') throw error;
      await this.make(path.slice(0, path.lastIndexOf('/')) || '/');
      await this.make(path);
    }
  }

  /** The names below a node; none if it is not there. */
  async children(path: string): Promise<string[]> {
    const found = await orNone(this.ask<[string[], Stat]>((client, done) => client.getChildren(path, done)));
    return found?.[0] ?? [];
  }

  /** `undefined`: there is no such node. */
  async data(path: string): Promise<{ readonly text: string; readonly stat: Stat } | undefined> {
    const found = await orNone(this.ask<[Buffer | undefined, Stat]>((client, done) => client.getData(path, done)));
    return found && { text: found[0]?.toString() ?? '', stat: found[1] };
  }

  /** Deletes nodes, as far as they can be deleted. */
  async remove(...paths: readonly string[]): Promise<void> {
    await Promise.allSettled(paths.map((path) => this.ask<[]>((client, done) => client.remove(path, -1, done))));
  }

  /** Calls back when the connection breaks. @returns what stops that. */
  onBreak(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.link?.end();
  }

  /** @throws {StoreError} which `isUnsent`. */
  private async connected(): Promise<ZookeeperLink> {
    if (this.isClosed) throw new StoreError('The ZooKeeper store is closed.', { transient: false, isUnsent: true });
    const link = await (this.opening ??= detached(() => this.open()));
    if (await link.isConnectedWithin(this.requestTimeout)) return link;
    throw this.late('gave no connection', true);
  }

  private async open(): Promise<ZookeeperLink> {
    const { client, hosts, auth } = this.target;
    const broke = (link: ZookeeperLink): void => (client ? this.broke() : this.drop(link));
    try {
      const link = client ? new ZookeeperLink(client, broke) : await ZookeeperLink.open(hosts, auth, this.requestTimeout, broke);
      if (this.isClosed) void link.end();
      return (this.link = link);
    } catch (error) {
      this.opening = undefined;
      throw error instanceof LockConfigError ? error : storeErrorOf(error);
    }
  }

  /** A client of our own is replaced. One that is lent stays. */
  private drop(link: ZookeeperLink): void {
    if (this.link !== link || this.target.client) return;
    this.link = this.opening = undefined;
    void link.end();
    this.broke();
  }

  private broke(): void {
    for (const listener of [...this.listeners]) listener();
  }

  private late(problem: string, isUnsent = false): StoreError {
    const advice = this.target.client ? ' The client is yours: connect it, and make another if its session has expired.' : '';
    return new StoreError(`ZooKeeper ${problem} within ${this.requestTimeout} ms.${advice}`, { transient: true, isUnsent });
  }
}

/** `undefined`: the node is not there. */
async function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (codeOf(error) !== NO_NODE) throw error;
    return undefined;
  }
}
