import { eventually } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { pause } from '../../support/time.js';
import { startCallers } from './cluster-callers.js';
import { useCluster } from './cluster.setting.js';
import { endOf, outcomeOf } from './setting.js';
import { woken } from './waiting.js';

describe('a slot of a Cluster that moves', () => {
  const on = useCluster();
  const { setting } = on;
  const KEY = 'stock:{42}';
  const OTHERS = ['a:{42}', 'b:{42}', 'c:{42}'];

  /** The master that has the slot. */
  let at: number;
  const home = () => on.cluster.masters.indexOf(on.cluster.nodeOf(KEY));
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
    await moveSlot({ slot: slotOf(KEY), from, to: masters[at]!, between });
  }

  /** How often the masters have sent somebody to the other node, and how often they had only some of the keys of a script. */
  async function redirections(): Promise<{ ask: number; tryAgain: number }> {
    const clients = on.cluster.masters.map((node) => node.client());
    const stats = (await Promise.all(clients.map((client) => client.info('errorstats')))).join('\n');
    for (const client of clients) client.disconnect();
    const count = (code: string): number =>
      [...stats.matchAll(new RegExp(`errorstat_${code}:count=(\\d+)`, 'g'))].reduce((sum, [, one]) => sum + Number(one), 0);
    return { ask: count('ASK'), tryAgain: count('TRYAGAIN') };
  }

  async function expectMore(before: { ask: number; tryAgain: number }): Promise<void> {
    const now = await redirections();
    expect(now.ask).toBeGreaterThan(before.ask);
    expect(now.tryAgain).toBeGreaterThan(before.tryAgain);
  }

  it('while 20 callers of 2 processes lock in it shows no error, no two holders, and nobody is left behind (G2, G6)', async () => {
    const keys = [KEY, ...OTHERS];
    const callers = await startCallers(on, 2, {
      keys,
      callers: 10,
      options: { keyTimeout: 10_000, waitTimeout: 20_000, retryInterval: 100 },
    });
    const before = await redirections();
    for (let round = 0; round < 3; round++) {
      const served = await callers.served();
      await eventually(async () => (await callers.served()) >= served + 50, { within: 20_000 });
      // While some of the keys are at each node.
      await move(() => pause(20));
    }
    const served = await callers.served();
    await eventually(async () => (await callers.served()) >= served + 50, { within: 20_000 });
    for (const { errors, lost, met, refused } of await callers.stop())
      expect({ errors, lost, met, refused }).toEqual({ errors: [], lost: 0, met: 0, refused: 0 });
    await expectMore(before);
    expect(await setting.redis.exists(...keys.flatMap((key) => [key, `${key}::queue`]))).toBe(0);
  }, 60_000);

  it.each(['own', 'lent'])(
    'has no lease lost that is renewed together with one that has moved already, with a client that is %s (G4)',
    async (whose) => {
      const { store } = whose === 'own' ? on.locks() : on.borrowed();
      const keys = [KEY, ...OTHERS];
      for (const driver of [store.mutex, store.semaphore!]) {
        const share = driver.isShared ? { count: 1, permits: 1, rank: 0 as const } : undefined;
        for (const key of keys) await driver.acquire({ key, owner: 'me', ttl: 20_000, tokens: 1, queue: false, share });
        do {
          await move(async () => {
            // The client is sent where the first one of a request is.
            for (let first = 0; first < keys.length; first++) {
              const inOrder = [...keys.slice(first), ...keys.slice(0, first)];
              const replies: PromiseSettledResult<string>[] = [];
              // For a moment all of them may be refused.
              await eventually(async () => {
                replies.push(...(await Promise.allSettled(driver.renew(inOrder.map((key) => ({ key, owner: 'me', ttl: 20_000 }))))));
                expect(replies).toContainEqual({ status: 'fulfilled', value: 'renewed' });
              });
              expect(replies).not.toContainEqual({ status: 'fulfilled', value: 'lost' });
            }
          });
        } while (at !== home());
        for (const key of keys) expect(await driver.release({ key, owner: 'me', keepFor: 0 })).toBe('released');
      }
    },
    60_000,
  );

  it.each([
    ['own', 2_000],
    ['lent', 6_000],
  ])(
    'costs no lease in it, however long it takes: each is renewed where it is, with a client that is %s (G4)',
    async (whose, keyTimeout) => {
      const locks = whose === 'own' ? on.locks() : on.borrowed();
      const lost = jest.fn();
      locks.on('lost', lost);
      // They are renewed together with those of other slots.
      const keys = [KEY, ...OTHERS, ...on.cluster.keysOn(on.cluster.nodeOf(KEY), 20)];
      const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ...woken, keyTimeout })));
      const before = await redirections();
      await move(async () => {
        const ends = leases.map((lease) => endOf(lease));
        await eventually(() => leases.every((lease, i) => endOf(lease) > ends[i]! + 200), { within: 10_000 });
      });
      expect(lost).not.toHaveBeenCalled();
      await expectMore(before);
      const next = outcomeOf(on.locks().acquire(KEY, { keyTimeout: 10_000, waitTimeout: 10_000 }));
      expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => true));
      const { value } = await next;
      await value!.release();
    },
    90_000,
  );
});
