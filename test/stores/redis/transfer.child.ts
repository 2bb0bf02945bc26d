// Moves money between accounts that nothing guards but the locks of all of them, if it is told to use them: reads all, pauses, writes all. How much was
// moved it notes as well.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';

export interface TransferArgs {
  connection: RedisOptions;
  accounts: string[];
  transfers: number;
  callers: number;
  guarded: boolean;
  keyTimeout: number;
}
export type TransferMessage = { type: 'ready' } | { type: 'done'; error?: string };

const { connection, accounts, transfers, callers, guarded, keyTimeout } = JSON.parse(process.argv[2]!) as TransferArgs;
const bank = new Redis(connection);
const locks = new Locks(redisStore({ options: connection, requestTimeout: 10_000 }));
const options = { keyTimeout, waitTimeout: 60_000, retryInterval: 20_000 };
let left = transfers;

/** In an order of its own each time. */
function someAccounts(): string[] {
  const shuffled = accounts.map((account) => ({ account, place: Math.random() })).sort((a, b) => a.place - b.place);
  return shuffled.slice(0, 2 + Math.floor(Math.random() * 3)).map(({ account }) => account);
}

async function transfer(from: string, to: readonly string[]): Promise<void> {
  const balances = (await bank.mget(from, ...to)).map(Number);
  for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
  const changes = [-to.length, ...to.map(() => 1)];
  const writing = bank.multi();
  for (const [index, account] of [from, ...to].entries()) {
    writing.set(account, balances[index]! + changes[index]!);
    // What the server adds up by itself is right, whoever comes between.
    writing.incrby(`moved:${account}`, changes[index]!);
  }
  await writing.exec();
}

async function call(): Promise<void> {
  while (left-- > 0) {
    const [from = '', ...to] = someAccounts();
    const work = () => transfer(from, to);
    await (guarded ? locks.multiLock([from, ...to].map((account) => `lock:${account}`)).using(work, options) : work());
  }
}

process.once('message', () => {
  void Promise.all(Array.from({ length: callers }, call))
    .then(
      () => undefined,
      (error: Error) => error.message,
    )
    .then(async (error) => {
      await locks.close();
      bank.disconnect();
      tellParent({ type: 'done', error });
      process.disconnect();
    });
});
await Promise.all([bank.ping(), locks.acquire('warm-up', { retryCount: 0 }).then((lease) => lease.release())]);
tellParent({ type: 'ready' });
