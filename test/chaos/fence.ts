// Decrements under locks that are lost again and again, with the fence guard and without: npx tsx test/chaos/fence.ts [--count 1000000] [--unguarded 100000]
import { parseArgs } from 'node:util';
import { runDecrements } from '../fence-guard/decrements.js';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1000000' }, unguarded: { type: 'string', default: '100000' } },
});

const guarded = await runDecrements({ count: Number(values.count), guarded: true });
console.log('with the guard   ', JSON.stringify(guarded));
const unguarded = await runDecrements({ count: Number(values.unguarded), guarded: false });
console.log('without the guard', JSON.stringify(unguarded));
if (guarded.lost !== 0) throw new Error(`${guarded.lost} updates were lost with the guard.`);
if (unguarded.lost === 0) throw new Error('Nothing was lost without the guard: the faults did no harm, so this run shows nothing.');
