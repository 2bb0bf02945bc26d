// Hands a key over all the time between owners of its own, and tells which of them have lost it.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';
import { pause } from '../support/time.js';

export type SwapperMessage = { type: 'ready' } | { type: 'ended'; held: number; taken: string[]; asked: string[] };

const [url = '', longest = '10'] = process.argv.slice(2);
const all = [0, 1, 2].map(() => new Locks(redisStore({ url }), { logger: false, app: 'swapper', visible: true }));
/** owners that the key was taken from by force, and those that were asked to give it back */
const [taken, asked] = [[] as string[], [] as string[]];
let held = 0;
let isOver = false;

async function swap(locks: Locks): Promise<void> {
  while (!isOver) {
    const lease = await locks.acquire('key', { waitTimeout: Infinity, keyTimeout: 2_000 });
    held++;
    const { owner, signal } = lease;
    const ended = new AbortController();
    signal.addEventListener('abort', () => {
      asked.push(owner);
      ended.abort();
    });
    // Some for long enough to be found again, so that all moments of a release meet a hand-over.
    const length = Math.random() * Number(longest) * (Math.random() < 0.5 ? 1 : 5);
    await pause(length, undefined, { signal: ended.signal }).catch(() => undefined);
    if (!(await lease.release())) taken.push(owner);
  }
}

const swapping = Promise.all(all.map(swap));
tellParent({ type: 'ready' });
process.on('message', () => {
  isOver = true;
  void swapping.then(async () => {
    await Promise.all(all.map((locks) => locks.close()));
    tellParent({ type: 'ended', held, taken, asked });
    process.disconnect();
  });
});
