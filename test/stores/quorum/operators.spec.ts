import { quorumStore } from 'nestjs-distributed-lock/quorum';
import type { RedisConnection } from '../../support/redis-server.js';
import { QuorumError, type DoctorCheck, type Locks } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { startLines } from '../../doctor/examined.js';
import { eventually } from '../../support/eventually.js';
import { long, patient, useQuorum } from './setting.js';

const setting = useQuorum(3);
const reason = 'stuck';

let [locks, others]: Locks[] = [];
beforeEach(() => ([locks, others] = [setting.open(), setting.open()]));

const placeOf = (at: RedisConnection): string => ('path' in at ? at.path : `${at.host}:${at.port}`);

async function without<T>(count: number, work: () => Promise<T>): Promise<T> {
  const away = setting.servers.slice(-count);
  await Promise.all(away.map((server) => server.kill()));
  try {
    return await work();
  } finally {
    await Promise.all(away.map((server) => server.restart()));
  }
}

it('a quorum whose members do not vote yet is not healthy, though they answer', async () => {
  const early = setting.open({ ...patient, quarantine: 3_600_000 });
  expect(await rejection(early.acquire(setting.newKey(), { waitTimeout: 0 }))).toBeInstanceOf(QuorumError);
  const { isUp, error } = await early.health();
  expect([isUp, String(error)]).toEqual([false, expect.stringContaining('does not vote yet')]);
});

describe('while one of three members is away', () => {
  it('operators see the holder and the waiters of a key, and take it', async () => {
    const key = setting.newKey();
    const lease = await locks!.acquire(key, long);
    const [first, second] = [setting.open(), others!].map((each) => each.acquire(key, long));
    await eventually(async () => expect(await others!.inspect(key)).toMatchObject({ waiterCount: 2, fencingToken: lease.fencingToken }));
    await without(1, async () => {
      const report = await eventually(async () => {
        const seen = await others!.inspect(key);
        expect(seen.waiterCount).toBe(2);
        return seen;
      });
      expect(report).toMatchObject({ kind: 'mutex', holderCount: 1, holders: [{ owner: lease.owner }] });
      const token = report.fencingToken!;
      // The two may have recorded larger ones.
      expect(token).toBeGreaterThanOrEqual(lease.fencingToken!);
      const found: string[] = [];
      for await (const each of others!.list()) found.push(each.key);
      expect(found).toEqual([key]);
      expect(await others!.forceRelease(key, { reason, token, grace: 0 })).toEqual({
        outcome: 'forced',
        holder: lease.owner,
      });
      const next = await Promise.race([first!, second!]);
      expect(next.fencingToken).toBeGreaterThan(token);
      expect(await lease.release()).toBe(false);
      await next.release();
      await Promise.all([first!, second!].map(async (each) => (await each).release()));
    });
  });

  it('a key that only one of the others has is shown as held: the one that is away may have the vote that decides', async () => {
    const key = setting.newKey();
    const owner = 'a@host:1:x';
    await locks!.store.mutex.acquire({ key, owner, ttl: 60_000, tokens: 1, queue: false });
    await eventually(async () => expect(await setting.values(key)).toEqual([owner, owner, owner]));
    await setting.servers[0]!.client().flushall();
    await without(1, async () => {
      expect((await others!.inspect(key)).holders).toMatchObject([{ owner }]);
    });
    await eventually(async () => expect((await others!.inspect(key)).holders).toEqual([]));
    await setting.servers[1]!.client().flushall();
  });
});

it('without a majority, operators learn which members do not answer', async () => {
  await without(2, async () => {
    const key = setting.newKey();
    for (const asked of [locks!.inspect(key), locks!.forceRelease(key, { reason }), locks!.list()[Symbol.asyncIterator]().next()]) {
      const error = (await rejection(asked)) as QuorumError;
      expect(error).toBeInstanceOf(QuorumError);
      expect(error.transient).toBe(true);
      expect(error.message).toMatch(/member [23] \(redis\)|Redis/);
    }
  });
});

describe('the log', () => {
  function openLogged() {
    const lines: string[] = [];
    // Those of the members are in outage.spec.ts.
    const write = (message: string): void => void (message.startsWith('Member') || lines.push(message));
    return { lines, locks: setting.open(undefined, undefined, { logger: { warn: write, error: write } }) };
  }

  it('says that the store is away when a majority of the members is, and that it is back', async () => {
    const { lines, locks } = openLogged();
    await without(2, async () => {
      await rejection(locks.acquire(setting.newKey(), { waitTimeout: 0 }));
      await eventually(() =>
        expect(lines).toEqual([expect.stringMatching(/^Quorum does not answer since .*; locks wait \[NDL_STORE_AWAY\]$/)]),
      );
    });
    expect(lines[0]).toMatch(/2 × no answer/);
    await eventually(() => expect(lines.slice(1)).toEqual([expect.stringMatching(/^Quorum answers again after /)]));
    await locks.using(setting.newKey(), () => undefined, long);
  });
});

describe('the doctor', () => {
  const checkOf = (checks: readonly DoctorCheck[], id: string) => checks.filter((check) => check.id === id);

  it('examines each member, and says that members which forget need a quarantine', async () => {
    const { checks, verdict } = await locks!.doctor({ probe: 100 });
    expect(checkOf(checks, 'persistence').map(({ name, limits }) => [name, limits])).toEqual(
      [1, 2, 3].map((n) => [`member ${n}: persistence`, undefined]),
    );
    expect(checkOf(checks, 'quarantine')).toMatchObject([{ state: 'bad', limits: { purpose: 'correctness' } }]);
    expect(checkOf(checks, 'probe')).toMatchObject([{ state: 'ok' }]);
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
  });

  it('says at the start of an app where each member is', async () => {
    const [line] = await startLines(quorumStore(setting.servers.map(setting.store), patient), 'shop:');
    const places = setting.servers.map(({ connection }, index) => `member ${index + 1} at ${placeOf(connection)}/0`);
    expect(line).toContain(` with ${places.join('; ')}, namespace "shop:", answers in `);
  });

  it('finds nothing against them with a quarantine, though one of them evicts locks', async () => {
    const client = setting.servers[0]!.client();
    await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    setting.finally(() => client.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction'));
    const { checks, verdict } = await setting.open({ ...patient, quarantine: 60_000 }).doctor({ probe: false });
    expect(checkOf(checks, 'quarantine')).toMatchObject([{ state: 'ok', seen: expect.stringContaining('60 s') as string }]);
    expect(checkOf(checks, 'eviction').map(({ state }) => state)).toEqual(['bad', 'ok', 'ok']);
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
  });

  it('finds locks unfit when a majority evicts them', async () => {
    for (const server of setting.servers.slice(0, 2)) {
      const client = server.client();
      await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
      setting.finally(() => client.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction'));
    }
    expect((await locks!.doctor({ probe: false })).verdict).toMatchObject({ efficiency: 'no' });
  });
});
