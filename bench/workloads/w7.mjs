// Readers and writers of one key.
import { OURS_AS_MUTEX } from '../contestants/lineup.mjs';
import { shared } from './shared.mjs';

export const title = 'W7: readers and writers';

export async function run(bench) {
  const mixed = (id, name, writes) =>
    shared(bench, { id, title: name, kind: 'read/write', size: 2, callers: 25, writes, rival: OURS_AS_MUTEX });
  await bench.on('loopback', async () => {
    await mixed('w7-95-5', '95 % read, 5 % write', 0.05);
    await mixed('w7-50-50', '50 % read, 50 % write', 0.5);
  });
}
