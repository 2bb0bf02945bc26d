// Is paused in the middle of a turn while it holds two keys, and tells what it then finds. Its late writes show whether the resource checks tokens.
import { Redis, type RedisOptions } from 'ioredis';
import { LockLostError, Locks, type Lease } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { storeOver } from '../../support/redis-clients.js';
import { existsSync } from 'node:fs';
import { setTimeout as turns } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';
import { deposit } from './account.js';

export interface PausedArgs {
  connection: RedisOptions;
  /** a file that is made while the process is paused */
  flag: string;
}
export interface Findings {
  type: 'findings';
  remaining: number;
  assertHeld: string;
  /** of the other lease, which nobody asked, one turn of the event loop later */
  signalAborted: boolean;
  checkedWrite: string;
  uncheckedWrite: string;
  error: string;
  result: unknown;
}
export type PausedMessage = { type: 'holding' } | Findings;

const { connection, flag } = JSON.parse(process.argv[2]!) as PausedArgs;
const redis = new Redis(connection);
const locks = new Locks(redisStore(storeOver({ options: connection })), { logger: false });
const findings: Partial<Findings> = {};

async function work(lease: Lease, other: Lease): Promise<string> {
  const { signal } = other;
  const balance = await deposit.read(redis);
  tellParent({ type: 'holding' });
  while (!existsSync(flag)); // one turn, in which nothing else can run
  findings.remaining = lease.remaining();
  try {
    lease.assertHeld();
    findings.assertHeld = 'claims to be held';
  } catch (error) {
    findings.assertHeld = (error as Error).name;
  }
  await turns(0); // due last of all timers: one whole turn
  findings.signalAborted = signal.aborted;
  findings.checkedWrite = await deposit.write(redis, balance + 1, lease.fencingToken!);
  findings.uncheckedWrite = await deposit.writeUnchecked(redis, balance + 1);
  return 'late';
}

const other = await locks.acquire('other', { keyTimeout: 5_000 });
try {
  await locks.using('account', (lease) => work(lease, other), { keyTimeout: 5_000 });
} catch (error) {
  findings.error = (error as Error).name;
  findings.result = error instanceof LockLostError ? error.result : undefined;
}
tellParent({ type: 'findings', ...findings });
