import { StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { useCluster } from './cluster.setting.js';

const once = { keyTimeout: 20_000, waitTimeout: 0 };
const patient = { keyTimeout: 20_000, waitTimeout: 10_000, retryInterval: 50 };

describe('replicaAcks on a Cluster', () => {
  const on = useCluster({ replicas: 1 });
  const open = () => on.locks({ requestTimeout: 900, replicaAcks: 1 });

  it('asks the replica of the node that has the key', async () => {
    const { cluster } = on;
    const [here, there] = [cluster.masters[0]!, cluster.masters[1]!];
    const [[key = ''], [other = '']] = [cluster.keysOn(here, 1), cluster.keysOn(there, 1)];
    const replica = cluster.nodes[cluster.masters.length]!;
    const locks = open();
    await Promise.all([key, other].map((each) => locks.using(each, () => undefined, patient)));
    await replica.pause();
    try {
      const error = await locks.acquire(key, once).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true, message: expect.stringContaining('0 of 1 replica has it') });
      await locks.using(other, () => undefined, once);
    } finally {
      await replica.resume();
    }
    await locks.using(key, () => undefined, patient);
  });

  it('grants many keys at once, and those of a slot that has moved', async () => {
    const { cluster } = on;
    const locks = open();
    const keys = Array.from({ length: 200 }, (_, index) => `many:${index}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, patient)));
    await Promise.all(leases.map((lease) => lease.release()));
    const from = cluster.masters[2]!;
    const [key = ''] = cluster.keysOn(from, 1, 'moved:');
    for (const node of cluster.masters)
      await node.client().call('CLUSTER', 'SETSLOT', slotOf(key), 'NODE', cluster.idOf(cluster.masters[0]!));
    const lease = await locks.acquire(key, patient);
    await eventually(async () => expect(await cluster.masters[0]!.client().get(key)).toBe(lease.owner));
    expect(await lease.release()).toBe(true);
  });
});
