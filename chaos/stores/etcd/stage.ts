import type { LockStore } from '../../../lib/core.js';
import { partsOf } from '../../../lib/core/model/owner.js';
import { etcdStore } from '../../../lib/stores/etcd/etcd.store.js';
import { startEtcdCluster, type EtcdServer } from '../../../test/support/etcd-server.js';
import type { TcpProxy } from '../../../test/support/tcp-proxy.js';
import type { Leftover, Stage } from '../store.js';
import { etcdFaults } from './faults.js';
import type { EtcdPlace } from './worker.js';

const PREFIX = 'chaos/';

/** Three members. No proxies: the faults are those of members. */
export class EtcdStage implements Stage {
  readonly isShared = true;
  readonly faults = etcdFaults;
  readonly proxies: readonly TcpProxy[] = [];
  /** It is as old as the run, so that it knows the age of what is left. */
  private readonly store: LockStore;

  constructor(readonly members: readonly EtcdServer[]) {
    this.store = etcdStore(this.place());
  }

  place(): EtcdPlace {
    return { endpoints: this.members.map(({ url }) => url), prefix: PREFIX };
  }

  /** The member that leads, if there is one. */
  async leader(): Promise<EtcdServer | undefined> {
    for (const member of this.members) {
      const status = await this.ask<{ leader?: string; header: { member_id: string } }>(member, '/v3/maintenance/status', {}).catch(
        () => undefined,
      );
      if (status?.leader !== undefined && status.leader === status.header.member_id) return member;
    }
    return undefined;
  }

  async ask<Reply>(member: EtcdServer, path: string, body: object): Promise<Reply> {
    const reply = await fetch(member.url + path, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(2_000) });
    return (await reply.json()) as Reply;
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

export async function startStage(): Promise<EtcdStage> {
  return new EtcdStage(await startEtcdCluster());
}
