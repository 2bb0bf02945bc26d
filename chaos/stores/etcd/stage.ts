import { etcdStore } from '../../../lib/stores/etcd/etcd.store.js';
import { startEtcdCluster, type EtcdServer } from '../../../test/support/etcd-server.js';
import { MembersStage } from '../members/stage.js';
import type { EtcdPlace } from './worker.js';

export async function startStage(): Promise<MembersStage> {
  const members = await startEtcdCluster();
  const place: EtcdPlace = { endpoints: members.map(({ url }) => url), prefix: 'chaos/' };
  return new MembersStage({
    ...{ members, place },
    store: etcdStore(place),
    faults: [
      {
        name: 'old revisions compacted',
        group: 'server',
        isWide: true,
        duration: [0, 0],
        async strike() {
          const [member] = members as [EtcdServer];
          const { header } = await ask<{ header: { revision: string } }>(member, '/v3/kv/range', { key: 'AA==' });
          await ask(member, '/v3/kv/compaction', { revision: header.revision, physical: true });
        },
      },
    ],
  });
}

async function ask<Reply>(member: EtcdServer, path: string, body: object): Promise<Reply> {
  const reply = await fetch(member.url + path, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(2_000) });
  return (await reply.json()) as Reply;
}
