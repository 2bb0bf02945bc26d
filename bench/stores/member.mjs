// A process that takes one key again and again on one store. What it does is in its argument; it begins at a message, and sends what it has seen.
import { Locks } from 'nestjs-distributed-lock/core';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { clock, section } from '../measure/clock.mjs';
import { Sections } from '../measure/oracle.mjs';
import { openStore } from './open.mjs';

const { store: name, place, counter, callers, turns } = JSON.parse(process.argv[2]);
const isRedlock = name === 'redlock';
const store = isRedlock ? undefined : await openStore(name, place);
const locks = isRedlock ? await redlockOf(place) : new Locks(store, { logger: false });
const file = openSync(counter, 'r+');
const bytes = Buffer.alloc(16);
const sections = new Sections();
const waits = [];

/** A number that only the lock guards. */
async function count() {
  readSync(file, bytes, 0, 16, 0);
  const value = Number(bytes.toString('latin1'));
  await section(1);
  writeSync(file, String(value + 1).padStart(16), 0);
}

/** Not needed for the other stores, and in a package of its own. */
async function redlockOf(urls) {
  const { openRedlock } = await import('../contestants/redlock-quorum.mjs');
  return openRedlock(
    urls.split(',').map((url) => new URL(url).port),
    10,
  );
}

async function loop(key, each, isMeasured) {
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let turn = 0; turn < each; turn++) {
        const asked = clock();
        const lease = await locks.acquire(key, { keyTimeout: 10_000, waitTimeout: Infinity });
        if (isMeasured) waits.push(clock() - asked);
        await (isMeasured ? sections.run(count) : section(1));
        await lease.release();
      }
    }),
  );
}

await loop('warm-up', 4, false);
process.once('message', async () => {
  const start = clock();
  await loop('one', turns, true);
  const end = clock();
  await locks.close();
  closeSync(file);
  const splitVotes = store?.mutex.ballots?.splitVotes ?? 0;
  process.send({ start, end, waits, splitVotes, times: [...sections.times] }, () => process.disconnect());
});
process.send('ready');
