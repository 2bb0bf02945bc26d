import { StoreError } from '../../core/model/errors.js';
import { after, now } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import {
  codeOf,
  driver,
  NO_NODE,
  NODE_EXISTS,
  PERSISTENT,
  storeErrorOf,
  type Acls,
  type Done,
  type Stat,
  type ZookeeperAuth,
  type ZookeeperClient,
  type ZookeeperTransaction,
} from './zookeeper.client.js';
import { LentLink, OwnLink, type ZookeeperLink } from './zookeeper.link.js';

/** An entry of an ACL. */
export interface Right {
  readonly scheme: string;
  readonly id: string;
  readonly permissions: number;
}

/** Where ZooKeeper is, and what is ours there. */
export interface Place {
  /** `undefined`: a client of our own is used, which connects to the hosts. */
  readonly client: ZookeeperClient | undefined;
  readonly hosts: string;
  /** The node above all of ours. */
  readonly root: string;
  readonly auth: readonly ZookeeperAuth[];
  /** Of the nodes that we make. `undefined`: anybody may do everything. */
  readonly acl: readonly Right[] | undefined;
}

/** One step of a transaction. */
export type Step = (transaction: ZookeeperTransaction, acls: Acls) => unknown;

/** The last node that was written; or the step that failed, so that nothing was changed. */
export type Outcome = { readonly stat: Stat | undefined } | { readonly failed: number; readonly code: number };

/**
 * Requests, each with a time limit. Nothing is sent unless the client is connected: it would keep a request, and send it when nobody waits for it any
 * more. It does not notice a silent connection either: after two requests in a row without an answer, a client of our own is replaced.
 */
export class ZookeeperSession {
  private opening: Promise<ZookeeperLink> | undefined;
  private link: ZookeeperLink | undefined;
  private acls: Acls;
  private isClosed = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly place: Place,
    readonly requestTimeout: number,
  ) {}

  /** Sends a request. While the client is connected, they are sent in the order in which this is called, and answered in that order. @throws {StoreError} */
  async ask<Results extends readonly unknown[]>(send: (client: ZookeeperClient, done: Done<Results>) => void): Promise<Results> {
    const end = now() + this.requestTimeout;
    const link = await this.connected();
    return new Promise<Results>((resolve, reject) => {
      const sentAt = now();
      const fail = (cause: unknown): void => {
        clearTimeout(timer);
        link.pending.delete(fail);
        reject(storeErrorOf(cause));
      };
      const timer = after(Math.max(1, end - sentAt), () => {
        fail(this.late('did not answer'));
        if (sentAt > link.doubtedAt) this.drop(link);
        link.doubtedAt = Math.min(link.doubtedAt, now());
      });
      link.pending.add(fail);
      try {
        send(link.client, (error, ...results) => {
          link.doubtedAt = Infinity;
          if (error) return fail(error);
          clearTimeout(timer);
          link.pending.delete(fail);
          resolve(results);
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
      for (const step of steps) step(transaction, this.acls);
      transaction.commit((error, results = []) => {
        const failed = results.findIndex(({ err = 0 }) => err !== 0);
        if (error && failed >= 0) done(null, { failed, code: results[failed]!.err! });
        else done(error, { stat: results.findLast(({ stat }) => stat)?.stat });
      });
    });
    return outcome;
  }

  async create(path: string, data: string, mode: number): Promise<void> {
    await this.ask<[string]>((client, done) => client.create(path, Buffer.from(data), this.acls, mode, done));
  }

  /** Makes a node, and those above it. If it is there, it stays as it is. From below: a user may have no rights above. */
  async make(path: string, data = ''): Promise<void> {
    try {
      await this.create(path, data, PERSISTENT);
    } catch (error) {
      if (codeOf(error) === NODE_EXISTS) return;
      if (codeOf(error) !== NO_NODE || path === '/') throw error;
      await this.make(path.slice(0, path.lastIndexOf('/')) || '/');
      await this.make(path, data);
    }
  }

  /** The names below a node; none if it is not there. */
  async children(path: string): Promise<string[]> {
    const [names] = await this.ask<[string[], Stat]>((client, done) => client.getChildren(path, done)).catch(absent<[string[]]>([[]]));
    return names;
  }

  /** `undefined`: there is no such node. */
  async data(path: string): Promise<{ readonly text: string; readonly stat: Stat } | undefined> {
    const found = await this.ask<[Buffer | undefined, Stat]>((client, done) => client.getData(path, done)).catch(absent(undefined));
    return found && { text: found[0]?.toString() ?? '', stat: found[1] };
  }

  /** Deletes a node with what is below it, as far as it can be deleted. */
  async remove(path: string): Promise<void> {
    const names = await this.children(path);
    const paths = [...names.map((name) => `${path}/${name}`), path];
    await Promise.allSettled(paths.map((each) => this.ask<[]>((client, done) => client.remove(each, -1, done))));
  }

  /** Calls back when the connection breaks. @returns what stops that. */
  onBreak(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const { link } = this;
    this.link = this.opening = undefined;
    await link?.end();
  }

  /** @throws {StoreError} which `isUnsent`. */
  private async connected(): Promise<ZookeeperLink> {
    if (this.isClosed) throw new StoreError('The ZooKeeper store is closed.', { transient: false, isUnsent: true });
    const link = this.link ?? (await (this.opening ??= detached(() => this.open())));
    if (await link.isConnectedWithin(this.requestTimeout)) return link;
    this.drop(link);
    throw this.late('gave no connection', true);
  }

  private async open(): Promise<ZookeeperLink> {
    const { client, hosts, auth, acl } = this.place;
    try {
      if (acl) {
        const { ACL, Id } = await driver();
        this.acls = acl.map(({ scheme, id, permissions }) => new ACL(permissions, new Id(scheme, id)));
      }
      const link = client ? new LentLink(client, () => this.broke()) : await OwnLink.open(hosts, auth, this.requestTimeout, (each) => this.drop(each));
      if (this.isClosed) void link.end();
      return (this.link = link);
    } catch (error) {
      this.opening = undefined;
      throw storeErrorOf(error);
    }
  }

  /** A client of our own is replaced. One that is lent stays. */
  private drop(link: ZookeeperLink): void {
    if (this.link !== link || this.place.client) return;
    this.link = this.opening = undefined;
    void link.end();
    this.broke();
  }

  private broke(): void {
    for (const listener of [...this.listeners]) listener();
  }

  private late(problem: string, isUnsent = false): StoreError {
    const advice = this.place.client ? ' The client is yours: connect it, and make another one if its session has expired or its server is silent.' : '';
    return new StoreError(`ZooKeeper ${problem} within ${this.requestTimeout} ms.${advice}`, { transient: true, isUnsent });
  }
}

/** For `catch`: a node that is not there is no error. */
function absent<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (codeOf(error) !== NO_NODE) throw error;
    return instead;
  };
}
