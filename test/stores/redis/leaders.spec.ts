import { candidate, elected } from '../../contract/candidates.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { entriesOf, queued, scriptCalls, woken } from './waiting.js';

const KEY = 'shop-leader';
/** A standby looks by itself only when a lease runs out. */
const mortal = { keyTimeout: 5_000, retryInterval: 20_000 };
/** Nothing runs out and nobody looks: only a message explains a change. */
const immortal = { keyTimeout: woken.keyTimeout, retryInterval: woken.retryInterval };

describe('a leader', () => {
  const setting = useRedis();

  it('that a partition cuts off steps down before another one leads, stands again when it is healed, and leads later (G3)', async () => {
    const proxy = await setting.proxy();
    const [cut, near] = [setting.own(proxy.connection, { requestTimeout: 2_000 }), setting.own()].map((locks) =>
      locks.leaderElection('shop', { ...mortal, retryInterval: 200 }),
    );
    const a = candidate(cut!);
    await elected(a);
    const b = candidate(near!);
    await queued(setting, KEY, 1);
    const order: string[] = [];
    cut!.on('revoked', () => order.push('revoked'));
    near!.on('elected', () => order.push('elected'));
    proxy.blackhole();
    const { fencingToken } = await elected(b);
    expect(order).toEqual(['revoked', 'elected']);
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
    eventually(async () => expect(await entriesOf(setting, KEY)).toEqual(Array(count).fill(expect.stringContaining('inbox:'))));
  const nobodyAsks = () =>
    eventually(async () => {
      const before = await scriptCalls(setting);
      await staysTrue(async () => expect(await scriptCalls(setting)).toBe(before), 300);
    });

  it('and its standbys leave the server alone for as long as all is well (G7)', async () => {
    const elections = [setting.own(), setting.own(), setting.own()].map((locks) => locks.leaderElection('shop', immortal));
    for (const election of elections) candidate(election);
    await reachable(2);
    await nobodyAsks();
    for (let times = 0; times < 3; times++) {
      await eventually(() => elections.some((election) => election.isLeader()));
      await elections.find((election) => election.isLeader())!.resign();
    }
  });

  it('and its standbys do so too where they began while the server was away (G7, G8)', async () => {
    await setting.server.kill();
    const stores = [setting.own(), setting.own()].map((locks) => ({ locks, asks: jest.spyOn(locks.store.mutex, 'acquire') }));
    const elections = stores.map(({ locks }) => locks.leaderElection('shop', immortal));
    elections.forEach((election) => candidate(election));
    // By then they have failed to open an inbox, and have asked again.
    await eventually(() => stores.every(({ asks }) => asks.mock.calls.length > 1));
    await setting.server.restart();
    await eventually(() => elections.some((election) => election.isLeader()));
    await reachable(1);
    await nobodyAsks();
    const [leading, standby] = elections[0]!.isLeader() ? elections : elections.reverse();
    await leading!.resign();
    await eventually(() => standby!.isLeader());
    await standby!.resign();
  });
});
