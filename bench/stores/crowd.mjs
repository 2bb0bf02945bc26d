import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { overlaps } from '../measure/oracle.mjs';
import { quantile, sum } from '../measure/statistics.mjs';

const program = fileURLToPath(new URL('member.mjs', import.meta.url));

/**
 * Several processes with several callers each on one key: milliseconds in all, and the 99th percentile of a wait.
 *
 * @param limit milliseconds after which it is given up: the total is `Infinity` then. @throws {Error} if two were in at a time.
 */
export async function crowd({ store, place, counter, processes, callers, turns, limit = 600_000 }) {
  writeFileSync(counter, '0'.padStart(16));
  const order = JSON.stringify({ store, place, counter, callers, turns });
  const members = Array.from({ length: processes }, () => fork(program, [order], { execArgv: [] }));
  let timer;
  const isOver = new Promise((resolve) => (timer = setTimeout(resolve, limit, 'over')));
  try {
    if ((await Promise.race([Promise.all(members.map(messageOf)), isOver])) === 'over')
      return { total: Infinity, splitVotes: 0, p99: Infinity };
    const results = Promise.all(members.map(messageOf));
    results.catch(() => undefined);
    for (const member of members) member.send('begin');
    const all = await Promise.race([results, isOver]);
    if (all === 'over') return { total: Infinity, splitVotes: 0, p99: Infinity };
    const sections = processes * callers * turns;
    const counted = Number(readFileSync(counter, 'latin1'));
    const crossed = overlaps(all.map(({ times }) => Float64Array.from(times)));
    if (counted !== sections || crossed > 0) throw new Error(`${store}: ${counted} of ${sections} counted, ${crossed} overlaps`);
    return {
      total: Math.max(...all.map(({ end }) => end)) - Math.min(...all.map(({ start }) => start)),
      splitVotes: sum(all.map(({ splitVotes }) => splitVotes)),
      p99: quantile(
        all.flatMap(({ waits }) => waits),
        0.99,
      ),
    };
  } finally {
    clearTimeout(timer);
    for (const member of members) member.kill('SIGKILL');
  }
}

async function messageOf(member) {
  const [message] = await Promise.race([
    once(member, 'message'),
    once(member, 'exit').then(([code]) => Promise.reject(new Error(`A process ended with ${code}`))),
  ]);
  return message;
}
