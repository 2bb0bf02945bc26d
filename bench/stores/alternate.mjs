// A process that takes one key again and again beside another one, which each release hands it over to. Sends when it was in.
import { Locks } from 'nestjs-distributed-lock/core';
import { clock } from '../measure/clock.mjs';
import { openStore } from './open.mjs';

const { store: name, place, turns } = JSON.parse(process.argv[2]);
const locks = new Locks(await openStore(name, place), { logger: false });
const options = { keyTimeout: 10_000, waitTimeout: Infinity, retryInterval: 5_000, fair: true };

async function take(key, count) {
  const times = [];
  for (let turn = 0; turn < count; turn++) await locks.using(key, () => void times.push(clock()), options);
  return times;
}

await take('warm-up', 200);
process.once('message', async () => {
  const times = await take('one', turns);
  await locks.close();
  process.send(times, () => process.disconnect());
});
process.send('ready');
