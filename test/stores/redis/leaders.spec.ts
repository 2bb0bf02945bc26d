import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { candidate, elected } from '../../contract/candidates.js';
import type { Child } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import type { Findings, LeaderMessage } from './leader.child.js';
import { judge, reigns, type Entry } from './reigns.js';
import { useRedis } from './setting.js';
import { AT_ONCE, killSubscribers, queued } from './waiting.js';

const KEY = 'shop-leader';
const KEY_TIMEOUT = 1_500;
/** A standby looks by itself only when a lease runs out. */
const mortal = { keyTimeout: KEY_TIMEOUT, retryInterval: 20_000 };
/** Nothing runs out and nobody looks: only a message explains a change that comes soon. */
const immortal = { keyTimeout: 60_000, retryInterval: 60_000 };

describe('leaders that are processes of their own', () => {
  const setting = useRedis();
  const log = () => reigns.read(setting.redis);
  const fork = (name: string, options: object) =>
    setting.fork<LeaderMessage>('leader.child.ts', { connection: setting.server.connection, name, options });

  async function forkAll<N extends string>(options: object, ...names: N[]): Promise<Record<N, Child<LeaderMessage>>> {
    const children = await Promise.all(names.map((name) => fork(name, options)));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    return Object.fromEntries(names.map((name, index) => [name, children[index]!])) as Record<N, Child<LeaderMessage>>;
  }

  /** The first to lead, then the others in their order. */
  async function standInOrder(...children: Child<LeaderMessage>[]): Promise<void> {
    for (const [index, child] of children.entries()) {
      child.send({ type: 'stand' });
      if (index === 0) await child.waitFor('elected');
      else await queued(setting, KEY, index);
    }
  }

  /** The first entry of another leader than this one. */
  const successor = (of: string, within = 10_000): Promise<Entry> =>
    eventually(
      async () => {
        const last = (await log()).at(-1);
        if (!last || last.leader === of) throw new Error(`${of} still leads`);
        return (await log()).find(({ token }) => token === last.token)!;
      },
      { within },
    );

  const serverTime = async () => {
    const [seconds, micros] = await setting.redis.time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  };

  it('are two at a time where nobody elects them: the judge sees it', async () => {
    const { a, b } = await forkAll(mortal, 'a', 'b');
    a.send({ type: 'usurp' });
    b.send({ type: 'usurp' });
    await eventually(async () => expect(judge(await log()).late.length).toBeGreaterThan(10));
  }, 60_000);

  it('are killed twice, and within keyTimeout and a second the next one leads; never two at a time (G2, G8)', async () => {
    const children: Record<string, Child<LeaderMessage>> = await forkAll(mortal, 'a', 'b', 'c');
    for (const child of Object.values(children)) child.send({ type: 'stand' });
    const leaders = [(await successor('nobody')).leader];
    await queued(setting, KEY, 2);
    for (const times of [1, 2]) {
      const leader = leaders.at(-1)!;
      // In the middle of its reign, at any moment between two renewals.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * KEY_TIMEOUT));
      const killedAt = await serverTime();
      await children[leader]!.kill();
      const next = await successor(leader);
      expect(next.at - killedAt).toBeLessThan(KEY_TIMEOUT + 1_000);
      leaders.push(next.leader);
      expect(new Set(leaders).size).toBe(times + 1);
    }
    children[leaders[2]!]!.send({ type: 'resign' });
    expect(await children[leaders[2]!]!.waitFor('ended')).toMatchObject({ outcome: 'resigned' });
    const { terms, late } = judge(await log());
    expect(late).toEqual([]);
    expect(terms.map(({ leader }) => leader)).toEqual(leaders);
    expect((await setting.keys()).filter((key) => !key.startsWith('reigns'))).toEqual([`{${KEY}}:fence`]);
  }, 60_000);

  it('hand over at once when they resign, and nothing is lost in between (G8)', async () => {
    const { a, b, c } = await forkAll(immortal, 'a', 'b', 'c');
    await standInOrder(a, b, c);
    for (const [leader, child] of Object.entries({ a, b })) {
      const start = await serverTime();
      child.send({ type: 'resign' });
      expect((await successor(leader)).at - start).toBeLessThan(AT_ONCE);
      await child.waitFor('ended');
    }
    const { terms, late } = judge(await log());
    expect(late).toEqual([]);
    expect(terms.map(({ leader }) => leader)).toEqual(['a', 'b', 'c']);
  }, 60_000);

  it('know on the first turn after a pause that their term is over, and the resource refuses what they write (G2, G3)', async () => {
    const flag = join(tmpdir(), `frozen-${process.pid}`);
    setting.finally(() => rmSync(flag, { force: true }));
    const { a, b } = await forkAll(mortal, 'a', 'b');
    await standInOrder(a, b);
    a.send({ type: 'freeze', flag });
    await a.waitFor('frozen');
    a.pause();
    const { token } = await b.waitFor('elected', { within: KEY_TIMEOUT + 10_000 });
    await successor('a');
    writeFileSync(flag, '');
    a.resume();
    expect(await a.waitFor('findings')).toEqual<Findings>({
      type: 'findings',
      isLeader: false,
      remaining: 0,
      assertHeld: 'LockLostError',
      signalAborted: true,
      write: 'refused',
    });
    await a.waitFor('revoked');
    // It stands again, behind the one that leads.
    await queued(setting, KEY, 1);
    b.send({ type: 'resign' });
    expect((await a.waitFor('elected')).token).toBeGreaterThan(token);
    const { terms, late } = judge(await log());
    expect(late.map(({ leader, outcome }) => `${leader} ${outcome}`)).toEqual(['a refused']);
    expect(terms.map(({ leader }) => leader).slice(0, 2)).toEqual(['a', 'b']);
  }, 60_000);
});

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

  it.each([
    ['its standby has lost its inbox', (setting_: typeof setting) => killSubscribers(setting_)],
    ['nobody tells its standby', ({ redis }: typeof setting) => redis.publish('nestjs-distributed-lock:inbox:nobody', '')],
  ])('is succeeded within two retryIntervals though %s (G8)', async (_what, disturb) => {
    const options = { keyTimeout: 60_000, retryInterval: 500 };
    const leader = candidate(setting.own().leaderElection('shop', options));
    await elected(leader);
    const standby = candidate(setting.own().leaderElection('shop', options));
    await queued(setting, KEY, 1);
    await disturb(setting);
    // As one gives a lock back who tells nobody.
    await setting.redis.del(KEY);
    const start = performance.now();
    await elected(standby);
    expect(performance.now() - start).toBeLessThan(1_000 + AT_ONCE);
    await standby.election.resign();
    await leader.election.resign();
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
    const elections = [setting.own(), setting.own()].map((locks) => locks.leaderElection('shop', immortal));
    elections.forEach((election) => candidate(election));
    // Until they have failed to open an inbox, and asked in vain many times.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
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
