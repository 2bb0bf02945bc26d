// One of very many processes that want one key: to read, and to hold it, or to take it again and again.
import { Locks } from 'nestjs-distributed-lock/core';
import { clock, section } from '../measure/clock.mjs';
import { openStore } from './open.mjs';

const { store, place, what } = JSON.parse(process.argv[2]);
const messages = [];
const logger = {
  log() {},
  debug() {},
  warn: (message) => messages.push(String(message)),
  error: (message) => messages.push(String(message)),
};
const locks = new Locks(await openStore(store, place), { logger });
const results = { done: [], failed: 0, lost: 0, messages };
let isOver = false;

/** Reads until the message that it is over. */
async function read() {
  const lock = locks.readWriteLock('one').read;
  while (!isOver && results.done.length === 0) {
    try {
      const lease = await lock.acquire({ waitTimeout: Infinity });
      results.done.push(clock());
      process.send('granted');
      lease.signal.addEventListener('abort', () => isOver || results.lost++);
    } catch {
      results.failed++;
    }
  }
}

async function take() {
  while (!isOver) {
    try {
      const lease = await locks.acquire('one', { waitTimeout: Infinity });
      results.done.push(clock());
      await section(1);
      await lease.release();
    } catch {
      results.failed++;
    }
  }
}

await (await locks.acquire(`own of ${process.pid}`)).release();
process.on('message', (message) => {
  if (message === 'begin') return void { read, take }[what]();
  isOver = true;
  process.send(results, () => process.exit());
});
process.send('ready');
