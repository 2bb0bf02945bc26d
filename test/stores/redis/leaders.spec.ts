import { candidate, elected } from '../../contract/candidates.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { AT_ONCE, queued } from './waiting.js';

const KEY = 'shop-leader';
const KEY_TIMEOUT = 1_500;
/** A standby looks by itself only when a lease runs out. */
const mortal = { keyTimeout: KEY_TIMEOUT, retryInterval: 20_000 };
/** Nothing runs out and nobody looks: only a message explains a change that comes soon. */
const immortal = { keyTimeout: 60_000, retryInterval: 60_000 };

describe('a leader', () => {
  const setting = useRedis();

  it('that a partition cuts off steps down before another one leads, stands again when it is healed, and leads in its turn (G3)', async () => {
    const proxy = await setting.proxy();
    const [cut, near] = [setting.own(proxy.connection, { requestTimeout: 300 }), setting.own()].map((locks) =>
      locks.leaderElection('shop', { ...mortal, retryInterval: 200 }),
    );
    const a = candidate(cut!);
    await elected(a);
    const b = candidate(near!);
    await queued(setting, KEY, 1);
    const times: Record<string, number> = {};
    cut!.on('revoked', () => (times.revoked ??= performance.now()));
    near!.on('elected', () => (times.elected ??= performance.now()));
    const start = performance.now();
    proxy.blackhole();
    const { fencingToken } = await elected(b);
    expect(times.revoked).toBeLessThan(times.elected!);
    expect(times.elected! - start).toBeLessThan(KEY_TIMEOUT + 1_000);
    expect(a.terms[0]!.signal.aborted).toBe(true);
    expect(cut!.isLeader()).toBe(false);
    await proxy.heal();
    await queued(setting, KEY, 1);
    await near!.resign();
    expect((await elected(a, 2)).fencingToken).toBeGreaterThan(fencingToken!);
    await cut!.resign();
  });

  /** So many stand by, and each can be woken. */
  const reachable = (count: number) =>
    eventually(async () =>
      expect(await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1')).toEqual(Array(count).fill(expect.stringContaining('inbox:'))),
    );

  const evals = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await setting.redis.info('commandstats'))?.[1] ?? 0);

  it('and its standbys leave the server alone for as long as all is well (G7)', async () => {
    const elections = [setting.own(), setting.own(), setting.borrowed()].map((locks) => locks.leaderElection('shop', immortal));
    for (const election of elections) candidate(election);
    await reachable(2);
    const before = await evals();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await evals()).toBe(before);
    const start = performance.now();
    for (let times = 0; times < 3; times++) {
      await eventually(() => elections.some((election) => election.isLeader()));
      await elections.find((election) => election.isLeader())!.resign();
    }
    expect(performance.now() - start).toBeLessThan(2 * AT_ONCE);
  });

  it('and its standbys do so too where they began while the server was away (G7, G8)', async () => {
    await setting.server.kill();
    const stores = [setting.own(), setting.own()];
    const asked = stores.map(({ store }) => jest.spyOn(store.mutex, 'acquire'));
    const elections = stores.map((locks) => locks.leaderElection('shop', immortal));
    elections.forEach((election) => candidate(election));
    // By then they have failed to open an inbox, and have asked again.
    await eventually(() => asked.every(({ mock }) => mock.calls.length > 3), { within: 20_000 });
    await setting.server.restart();
    await eventually(() => elections.some((election) => election.isLeader()), { within: 10_000 });
    await reachable(1);
    const before = await evals();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await evals()) - before).toBeLessThan(3);
    const [leading, standby] = elections[0]!.isLeader() ? elections : elections.reverse();
    const start = performance.now();
    await leading!.resign();
    await eventually(() => standby!.isLeader());
    expect(performance.now() - start).toBeLessThan(AT_ONCE);
    await standby!.resign();
  });

  it('that an outage of the server cannot reach is one again when it is over: standbys campaign through it', async () => {
    const elections = [setting.own(), setting.own()].map((locks) => locks.leaderElection('shop', { ...mortal, retryInterval: 100 }));
    const [a, b] = elections.map((election) => candidate(election));
    await eventually(() => a!.terms.length + b!.terms.length === 1);
    const [first, second] = a!.terms.length === 1 ? [a!, b!] : [b!, a!];
    await setting.server.kill();
    // It is none by the clock first: the signal comes with the next turn.
    await eventually(() => first.terms[0]!.signal.aborted);
    expect(first.election.isLeader()).toBe(false);
    await setting.server.restart();
    await eventually(() => a!.terms.length + b!.terms.length === 2);
    expect([first.election.isLeader(), second.election.isLeader()].filter(Boolean)).toHaveLength(1);
    await Promise.all(elections.map((election) => election.resign()));
    await Promise.all([a!.outcome, b!.outcome]);
  });
});
