// Callers that all want one key, and append to a log that nothing else guards: each line says how many it saw before, and its token.
import { appendFileSync, readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { tellParent } from './child.js';

export interface CrowdArgs {
  store: keyof typeof STORES;
  /** Of the store. */
  options: object;
  log: string;
  isGuarded: boolean;
}
export type CrowdMessage = { type: 'ready' } | { type: 'done'; error?: string };

const STORES = { file: fileStore, mysql: mysqlStore, postgres: postgresStore };
const CALLERS = 10;
const { store, options, log, isGuarded } = JSON.parse(process.argv[2]!) as CrowdArgs;
const locks = new Locks(STORES[store](options as never), { logger: false });
let isOver = false;

async function section(token: number | null): Promise<void> {
  const before = readFileSync(log, 'utf8').split('\n').length - 1;
  for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
  appendFileSync(log, `${before} ${token}\n`);
}

async function call(): Promise<void> {
  const patient = { keyTimeout: 5_000, waitTimeout: Infinity, retryInterval: 100 };
  while (!isOver) await (isGuarded ? locks.using('crowd', ({ fencingToken }) => section(fencingToken), patient) : section(0));
}

process.on('message', () => (isOver = true));
tellParent({ type: 'ready' });
const error = await Promise.all(Array.from({ length: CALLERS }, call)).then(
  () => undefined,
  (reason: Error) => reason.message,
);
await locks.close();
tellParent({ type: 'done', error });
process.disconnect();
