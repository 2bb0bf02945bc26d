// Stands for election and writes to a fenced log for as long as it leads; or writes without having been elected, if it is told to.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks, type LeaderElectionOptions, type Term } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent } from '../../support/child.js';
import { reigns } from './reigns.js';

export interface LeaderArgs {
  connection: RedisOptions;
  name: string;
  options: LeaderElectionOptions;
}
export type LeaderOrder = { type: 'stand' | 'usurp' | 'resign' } | { type: 'freeze'; flag: string };
export interface Findings {
  type: 'findings';
  isLeader: boolean;
  remaining: number;
  assertHeld: string;
  /** one turn of the event loop later */
  signalAborted: boolean;
  write: string;
}
export type LeaderMessage =
  | { type: 'ready' }
  | { type: 'frozen' }
  | { type: 'elected'; token: number }
  | { type: 'revoked'; token: number }
  | { type: 'ended'; outcome: string }
  | Findings;

const { connection, name, options } = JSON.parse(process.argv[2]!) as LeaderArgs;
const redis = new Redis(connection);
const election = new Locks(redisStore({ options: connection })).leaderElection('shop', options);
for (const type of ['elected', 'revoked'] as const) election.on(type, ({ fencingToken }) => tellParent({ type, token: fencingToken }));
let flag: string | undefined;

/** Stands still in the middle of a turn until the flag is there, and looks what is left of its term. */
async function freeze(term: Term, until: string): Promise<void> {
  tellParent({ type: 'frozen' });
  while (!existsSync(until));
  const findings: Partial<Findings> = { isLeader: election.isLeader(), remaining: term.remaining() };
  try {
    term.assertHeld();
    findings.assertHeld = 'claims to be held';
  } catch (error) {
    findings.assertHeld = (error as Error).name;
  }
  await pause(0);
  findings.signalAborted = term.signal.aborted;
  findings.write = await reigns.write(redis, name, term.fencingToken!);
  tellParent({ type: 'findings', ...findings });
}

async function rule(term: Pick<Term, 'signal' | 'fencingToken'>): Promise<void> {
  while (!term.signal.aborted) {
    await reigns.write(redis, name, term.fencingToken!);
    await pause(2);
    const until = flag;
    flag = undefined;
    if (until) await freeze(term as Term, until);
  }
}

async function obey(order: LeaderOrder): Promise<void> {
  if (order.type === 'stand') await election.run(rule).then(() => tellParent({ type: 'ended', outcome: 'resigned' }));
  if (order.type === 'resign') await election.resign();
  if (order.type === 'freeze') ({ flag } = order);
  if (order.type === 'usurp') {
    const [seconds, micros] = await redis.time();
    await rule({ signal: new AbortController().signal, fencingToken: Number(seconds) * 1_000_000 + Number(micros) });
  }
}

process.on('message', (order: LeaderOrder) => {
  obey(order).catch((error: Error) => tellParent({ type: 'ended', outcome: error.name }));
});
await Promise.all([redis.ping(), election.leader()]);
tellParent({ type: 'ready' });
