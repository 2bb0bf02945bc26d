import { Locks, QuorumError, UnsupportedPrimitiveError } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { long, patient, useQuorum } from './setting.js';

const setting = useQuorum(3);
const reason = 'stuck';

let [locks, others]: Locks[] = [];
beforeEach(() => ([locks, others] = [setting.open(), setting.open()]));

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

it('each member is asked by itself, and a key is free when a majority of them has taken it away', async () => {
  const key = setting.newKey();
  const lease = await locks!.acquire(key, long);
  for (const asked of [locks!.inspect(key), locks!.forceRelease(key, { reason }), locks!.list()[Symbol.asyncIterator]().next()])
    expect(await rejection(asked)).toBeInstanceOf(UnsupportedPrimitiveError);
  expect(locks!.store.supports('inspect')).toBe(false);
  const members = setting.servers.map((server) => new Locks(setting.store(server), { logger: false }));
  setting.finally(() => Promise.all(members.map((member) => member.close())));
  for (const member of members)
    await eventually(async () => expect((await member.inspect(key)).holders).toMatchObject([{ owner: lease.owner }]));
  for (const member of members.slice(1)) expect(await member.forceRelease(key, { reason, grace: 0 })).toMatchObject({ outcome: 'forced' });
  await (await others!.acquire(key, long)).release();
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
    expect(lines[0]).toMatch(/: free\. Redis is not connected/);
    await eventually(() => expect(lines.slice(1)).toEqual([expect.stringMatching(/^Quorum answers again after /)]));
    await locks.using(setting.newKey(), () => undefined, long);
  });
});

it('the doctor tries a lock, and knows nothing of what the members keep', async () => {
  const { checks, verdict } = await locks!.doctor({ probe: 100 });
  expect(checks.map(({ id, state }) => [id, state])).toEqual(expect.arrayContaining([['durability', 'unknown'], ['probe', 'ok']])); // prettier-ignore
  expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
});
