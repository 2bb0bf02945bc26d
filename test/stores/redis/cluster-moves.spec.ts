import type { LeaseDriver } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { startCallers } from './callers.js';
import { useOwnCluster } from './cluster.setting.js';
import { endOf } from './setting.js';
import { woken } from './waiting.js';

describe('a slot of a Cluster that moves', () => {
  const on = useOwnCluster();
  const { setting } = on;
  const TAG = '{42}';

  /** The master that has the slot. */
  let at: number;
  const home = () => on.cluster.masters.indexOf(on.cluster.nodeOf(TAG));
  beforeAll(() => {
    at = home();
  });
  afterEach(async () => {
    while (at !== home()) await move();
  });

  /** The slot of these keys, key by key, from the node that has it to the next one. */
  async function move(between?: () => Promise<unknown>): Promise<void> {
    const { masters, moveSlot } = on.cluster;
    const from = masters[at]!;
    at = (at + 1) % 3;
    await moveSlot({ slot: slotOf(TAG), from, to: masters[at]!, between });
  }

  /** How often the masters have sent somebody to the other node, and how often they had only some of the keys of a script. */
  async function redirections(): Promise<{ ask: number; tryAgain: number }> {
    const stats = (await on.each((client) => client.info('errorstats'))).join('\n');
    const count = (code: string): number =>
      [...stats.matchAll(new RegExp(`errorstat_${code}:count=(\\d+)`, 'g'))].reduce((sum, [, one]) => sum + Number(one), 0);
    return { ask: count('ASK'), tryAgain: count('TRYAGAIN') };
  }

  const keysOf = (whose: string, names: string): string[] => [...names].map((name) => `${whose}:${name}:${TAG}`);

  it('while 20 callers of 2 processes lock in it shows no error, no two holders, and leaves nobody behind (G2, G6)', async () => {
    const keys = keysOf('both', 'abcd');
    const options = { keyTimeout: 10_000, waitTimeout: 100_000, retryInterval: 100 };
    const callers = await startCallers(setting, 2, { store: on.where, keys, callers: 10, options });
    const before = await redirections();
    const met = async (): Promise<number> => {
      const { ask, tryAgain } = await redirections();
      return ask + tryAgain + (await callers.served());
    };
    for (let round = 0; round < 3; round++) {
      await callers.goOn(50);
      // While some of the keys are at each node.
      await move(async () => {
        const enough = (await met()) + 5;
        await eventually(async () => (await met()) >= enough);
      });
    }
    await callers.goOn(50);
    for (const tally of await callers.stop()) expect(tally).toMatchObject({ errors: [], lost: 0, met: 0, refused: 0 });
    const after = await redirections();
    expect(after.ask).toBeGreaterThan(before.ask);
    expect(after.tryAgain).toBeGreaterThan(before.tryAgain);
    expect(await setting.redis.exists(...keys.flatMap((key) => [key, `${key}::queue`]))).toBe(0);
  });

  it('has no lease lost that is renewed with one that has moved already (G4)', async () => {
    const { store } = on.locks();
    const request = { owner: 'me', ttl: 60_000, tokens: 1, queue: false };
    const holders: { driver: LeaseDriver; keys: string[] }[] = [];
    for (const driver of [store.mutex, store.semaphore!]) {
      const keys = keysOf(driver === store.mutex ? 'mutex' : 'semaphore', 'abcd');
      const share = driver.isShared ? { count: 1, permits: 1, rank: 0 as const } : undefined;
      for (const key of keys) await driver.acquire({ ...request, key, share });
      holders.push({ driver, keys });
    }
    async function renewInEachOrder({ driver, keys }: (typeof holders)[number]): Promise<void> {
      // The client is sent where the first one of a request is.
      for (let first = 0; first < keys.length; first++) {
        const inOrder = [...keys.slice(first), ...keys.slice(0, first)];
        const replies: PromiseSettledResult<string>[] = [];
        // For a moment all of them may be refused.
        await eventually(async () => {
          replies.push(...(await Promise.allSettled(driver.renew(inOrder.map((key) => ({ key, owner: 'me', ttl: 60_000 }))))));
          expect(replies).toContainEqual({ status: 'fulfilled', value: 'renewed' });
        });
        expect(replies).not.toContainEqual({ status: 'fulfilled', value: 'lost' });
      }
    }
    do await move(() => Promise.all(holders.map(renewInEachOrder)));
    while (at !== home());
    for (const { driver, keys } of holders) {
      for (const key of keys) expect(await driver.release({ key, owner: 'me', keepFor: 0 })).toBe('released');
    }
  });

  it('several requests in one write are not sent on to its new node once their callers have been answered (G6)', async () => {
    const [from, to] = [on.cluster.masters[at]!, on.cluster.masters[(at + 1) % 3]!];
    const [source, target] = [from.client(), to.client()];
    const moving = `{${on.cluster.keysOn(from, 1)[0]!}}`;
    const [stays = ''] = on.cluster.keysOn(from, 2).slice(1);
    // By default the client would end a connection that is silent for so long.
    const clusterOptions = { redisOptions: { socketTimeout: undefined } };
    const locks = on.locks({ requestTimeout: 2_000, clusterOptions });
    // So that each of them knows the scripts.
    for (const key of [moving, ...on.cluster.keysOn(to, 1)]) await locks.using(key, () => undefined, woken);
    // A node gives away no slot of which it has keys.
    await source.flushall();
    await source.call('CLIENT', 'PAUSE', 4_500, 'WRITE');
    // So that nothing is asked again.
    const calls = [moving, stays].map((key) => rejection(locks.acquire(key, { ...woken, waitTimeout: 100 })));
    await eventually(async () => expect(await source.info('clients')).toMatch(/^blocked_clients:[1-9]/m));
    await target.call('CLUSTER', 'SETSLOT', slotOf(moving), 'IMPORTING', on.cluster.idOf(from));
    for (const node of [target, source]) await node.call('CLUSTER', 'SETSLOT', slotOf(moving), 'NODE', on.cluster.idOf(to));
    for (const call of calls) expect(await call).toMatchObject({ name: 'StoreError', transient: true });
    await target.config('RESETSTAT');
    // It is answered when the pause is over.
    await source.del(stays);
    // A release may follow, but nobody takes the key.
    await staysTrue(async () => {
      expect(await target.get(moving)).toBeNull();
      expect(await target.info('commandstats')).not.toContain('cmdstat_set:');
    }, 1_000);
    await target.flushall();
    await source.call('CLUSTER', 'SETSLOT', slotOf(moving), 'IMPORTING', on.cluster.idOf(to));
    for (const node of [source, target]) await node.call('CLUSTER', 'SETSLOT', slotOf(moving), 'NODE', on.cluster.idOf(from));
  });

  it('costs no lease in it, however long it takes: each is renewed where it is (G4)', async () => {
    const lost = jest.fn();
    const leases = await Promise.all(
      [on.locks(), on.locks()].flatMap((locks, i) => {
        locks.on('lost', lost);
        // They are renewed together with those of other slots.
        const keys = [...keysOf(String(i), 'ab'), ...on.cluster.keysOn(on.cluster.nodeOf(TAG), 10, `${i}:`)];
        return keys.map((key) => locks.acquire(key, { ...woken, keyTimeout: 5_000 }));
      }),
    );
    const before = await redirections();
    await move(async () => {
      const ends = leases.map((lease) => endOf(lease));
      await eventually(() => leases.every((lease, i) => endOf(lease) > ends[i]! + 200));
    });
    expect(lost).not.toHaveBeenCalled();
    expect((await redirections()).ask).toBeGreaterThan(before.ask);
    const next = on.locks().acquire(leases[0]!.key, woken);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => true));
    await (await next).release();
  });
});
