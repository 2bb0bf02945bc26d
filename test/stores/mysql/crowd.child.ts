// Callers that all want one key, and append to a log that nothing else guards: each line says how many it saw before.
import { appendFileSync, readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { tellParent, type ChildMessage } from '../../support/child.js';

export type CrowdMessage = { type: 'ready' } | { type: 'done'; error?: string };

const [url = '', log = ''] = process.argv.slice(2);
const CALLERS = 10;
const locks = new Locks(mysqlStore({ url, schema: 'create', requestTimeout: 10_000 }), { logger: false });
let isOver = false;

async function section(token: number | null): Promise<void> {
  const before = readFileSync(log, 'utf8').split('\n').length - 1;
  for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
  appendFileSync(log, `${before} ${token}\n`);
}

async function call(): Promise<void> {
  const options = { keyTimeout: 5_000, waitTimeout: Infinity, retryInterval: 100 };
  while (!isOver) await locks.using('crowd', ({ fencingToken }) => section(fencingToken), options);
}

process.on('message', (message: ChildMessage) => {
  if (message.type === 'end') isOver = true;
});
tellParent({ type: 'ready' });
const error = await Promise.all(Array.from({ length: CALLERS }, call)).then(
  () => undefined,
  (reason: Error) => reason.message,
);
await locks.close();
tellParent({ type: 'done', error });
process.disconnect();
