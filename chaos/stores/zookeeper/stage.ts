import type { LockStore } from '../../../lib/core.js';
import { partsOf } from '../../../lib/core/model/owner.js';
import { zookeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { startZookeeperCluster, type ZookeeperServer } from '../../../test/support/zookeeper-server.js';
import type { TcpProxy } from '../../../test/support/tcp-proxy.js';
import type { Leftover, Stage } from '../store.js';
import { zookeeperFaults } from './faults.js';
import type { ZookeeperPlace } from './worker.js';

const NODE = '/chaos';

/** Three members. No proxies: the faults are those of members. */
export class ZookeeperStage implements Stage {
  readonly isShared = true;
  readonly faults = zookeeperFaults;
  readonly proxies: readonly TcpProxy[] = [];
  /** It is as old as the run, so that it knows the age of what is left. */
  private readonly store: LockStore;

  constructor(readonly members: readonly ZookeeperServer[]) {
    const { hosts, node } = this.place();
    this.store = zookeeperStore({ connectionString: hosts + node });
  }

  place(): ZookeeperPlace {
    return { hosts: this.members.map(({ connectionString }) => connectionString).join(), node: NODE };
  }

  /** The member that leads, if there is one. */
  async leader(): Promise<ZookeeperServer | undefined> {
    for (const member of this.members) if (await member.leads()) return member;
    return undefined;
  }

  async heal(): Promise<void> {
    for (const member of this.members) member.resume();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    const { inspector } = this.store;
    const left: Leftover[] = [];
    for await (const keys of inspector!.keys('', true)) {
      for (const { key, holders, waiters } of await inspector!.inspect(keys)) {
        if (holders.length > 0) left.push({ key, what: `${key}: held: ${JSON.stringify(holders)}` });
        const owners = waiters.map(({ owner }) => owner).filter((owner) => !pidsOfKilled.has(partsOf(owner)?.pid ?? 0));
        if (owners.length > 0) left.push({ key, what: `${key}: queue entries of live processes: ${owners.join(' ')}`, owners });
      }
    }
    return left;
  }

  async stop(): Promise<void> {
    await this.store.close();
    await Promise.all(this.members.map((member) => member.stop()));
  }
}

export async function startStage(): Promise<ZookeeperStage> {
  return new ZookeeperStage(await startZookeeperCluster());
}
