import { LockConfigError } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import type { TransferMessage } from './transfer.child.js';

const PROCESSES = 4;
const TRANSFERS = 2_000;
const ACCOUNTS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fritz'];
const BALANCE = 1_000_000;

describe('4 processes that move money between 6 accounts, 2 to 4 at a time, in any order', () => {
  const setting = useRedis();

  /** The accounts whose balance is not what was moved, and what went wrong. */
  async function move(guarded: boolean, kills = 0): Promise<{ wrong: string[]; errors: (string | undefined)[] }> {
    await setting.redis.del(ACCOUNTS.map((account) => `moved:${account}`));
    await setting.redis.mset(Object.fromEntries(ACCOUNTS.map((account) => [account, BALANCE])));
    const args = {
      connection: setting.server.connection,
      accounts: ACCOUNTS,
      transfers: TRANSFERS / PROCESSES,
      callers: 4,
      guarded,
      keyTimeout: kills ? 1_000 : 20_000,
    };
    const children = await Promise.all(Array.from({ length: PROCESSES }, () => setting.fork<TransferMessage>('transfer.child.ts', args)));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
    for (const child of children) child.send({ type: 'go' });
    for (const victim of children.splice(0, kills)) {
      await eventually(async () => (await setting.redis.keys('lock:*')).length > 0);
      await victim.kill();
    }
    const ends = await Promise.all(children.map((child) => child.waitFor('done', { within: 90_000 })));
    const balances = await setting.redis.mget(ACCOUNTS);
    const moved = await setting.redis.mget(ACCOUNTS.map((account) => `moved:${account}`));
    return {
      wrong: ACCOUNTS.filter((_account, index) => Number(balances[index]) !== BALANCE + Number(moved[index])),
      errors: ends.map(({ error }) => error),
    };
  }

  it('make or lose some without locks', async () => {
    const { wrong } = await move(false);
    expect(wrong).not.toEqual([]);
  }, 120_000);

  it('never do with a multi-lock, and never wait for each other for ever', async () => {
    const { wrong, errors } = await move(true);
    expect(errors).toEqual(Array.from({ length: PROCESSES }, () => undefined));
    expect(wrong).toEqual([]);
    const fences = ACCOUNTS.map((account) => `{lock:${account}}:fence`);
    expect((await setting.keys('*lock:*')).sort()).toEqual(fences.sort());
  }, 120_000);

  it('go on when two of them are killed, whose keys come free when their leases run out (G8)', async () => {
    const { wrong, errors } = await move(true, 2);
    expect(errors).toEqual([undefined, undefined]);
    expect(wrong).toEqual([]);
  }, 120_000);
});

describe('a multi-lock of one key by two stores that lead to one server', () => {
  const setting = useRedis();

  it('is refused as soon as it finds itself in its way, and gives everything back', async () => {
    const [one, other] = [setting.own(), setting.own()];
    const lock = one.multiLock(['before', one.mutex('key'), other.mutex('key')]);
    await expect(lock.acquire({ waitTimeout: Infinity })).rejects.toThrow(LockConfigError);
    await setting.own().multiLock(['before', 'key']).acquire({ waitTimeout: 5_000, keyTimeout: 60_000 });
  });
});
