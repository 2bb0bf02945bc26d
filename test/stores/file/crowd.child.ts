// Callers that all want one key, and append to a log that nothing else guards: each line says how many it saw before.
import { appendFileSync, readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';

const [directory = '', log = '', callers = '25', guarded = 'true'] = process.argv.slice(2);
const locks = new Locks(fileStore({ directory, requestTimeout: 5_000 }), { logger: false });
let isOver = false;
const seen = (): number => readFileSync(log, 'utf8').split('\n').length - 1;

async function section(token: number | null): Promise<void> {
  const before = seen();
  for (let turns = Math.random() * 4; turns > 1; turns--) await nextTurn();
  appendFileSync(log, `${before} ${token} ${process.pid}\n`);
}

async function call(): Promise<void> {
  const options = { keyTimeout: 5_000, waitTimeout: 60_000, retryInterval: 100 };
  while (!isOver) await (guarded === 'true' ? locks.using('crowd', ({ fencingToken }) => section(fencingToken), options) : section(0));
}

process.on('message', () => (isOver = true));
process.send?.({ type: 'ready' });
try {
  await Promise.all(Array.from({ length: Number(callers) }, call));
  await locks.close();
  process.exitCode = 0;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
process.disconnect();
