// One key that very many processes want: so many read it and hold it for a minute, or take it in turns. Or very many callers of this process want it in vain.
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { begin } from './measure/begin.mjs';
import { clock, sleep } from './measure/clock.mjs';
import { sum } from './measure/statistics.mjs';
import { openPlace } from './stores/place.mjs';

const program = fileURLToPath(new URL('stores/reader.mjs', import.meta.url));
const USAGE = `many [options]
  --what <how>          read: all hold it together; take: one after the other; late: see --callers; default: read
  --processes <list>    default: 50,100,200. 400 need 16 GB, and each core of the machine
  --store <list>        of postgres,redis,mysql,file; default: postgres
  --seconds <n>         default: 60
  --callers <list>      of this process, which hold a lock of the memory store, wait for one key, and time out together; default: 3000,6000

It prints \`cores\`: how many were in use, by whatever program.`;
const texts = { what: 'read', callers: '3000,6000', processes: '50,100,200', store: 'postgres' };
const { what, callers: crowds, processes: counts, store: stores, seconds } = await begin(USAGE, { texts, numbers: { seconds: 60 } });
const LONGEST = 60_000;
/** Milliseconds for all to queue. */
const SETTLING = 5000;
/** Processes that start at a time. */
const STARTING = 4;

const busy = () => sum(cpus().map(({ times }) => times.user + times.sys));

if (what === 'late')
  for (const callers of crowds.split(',').map(Number)) console.log(JSON.stringify({ what, callers, ...(await late(callers)) }));
else
  for (const store of stores.split(',')) {
    for (const processes of counts.split(',').map(Number)) {
      const { place, stop } = await openPlace(store, 3000);
      try {
        console.log(JSON.stringify({ store, what, processes, ...(await measure(store, place, processes)) }));
      } finally {
        await stop();
      }
    }
  }

/** For how many milliseconds the event loop is blocked, and how many leases are lost, when all wait timeouts are over at once. */
async function late(callers) {
  const locks = new Locks(memoryStore(), { logger: false });
  let lost = 0;
  locks.on('lost', () => lost++);
  const hot = await locks.acquire('hot');
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const wait = () => locks.acquire('hot', { waitTimeout: 3000 }).catch(() => undefined);
  const all = Array.from({ length: callers }, (_, index) => locks.using(`own ${index}`, wait, { waitTimeout: 0 }));
  await sleep(2000);
  loop.enable();
  await Promise.allSettled(all);
  await hot.release();
  await locks.close();
  return { blocked: Math.round(loop.max / 1e6), lost };
}

async function measure(store, place, processes) {
  const members = [];
  let granted = 0;
  try {
    while (members.length < processes) {
      const some = Array.from({ length: Math.min(STARTING, processes - members.length) }, () =>
        fork(program, [JSON.stringify({ store, place, what })], { execArgv: ['--max-semi-space-size=2'] }),
      );
      members.push(...some);
      await Promise.all(some.map((member) => once(member, 'message')));
    }
    await sleep(2000);
    for (const member of members) member.on('message', (message) => message === 'granted' && granted++);
    const start = clock();
    const before = busy();
    for (const member of members) member.send('begin');
    if (what === 'read') while (granted < processes && clock() - start < LONGEST) await sleep(50);
    const grantedIn = clock() - start;
    if (what === 'take') await sleep(SETTLING);
    const from = clock();
    await sleep(seconds * 1000);
    const to = clock();
    const cores = (busy() - before) / (clock() - start);
    const all = await Promise.all(
      members.map(async (member) => {
        const result = new Promise((resolve) => member.on('message', (message) => typeof message === 'object' && resolve(message)));
        member.send('end');
        return result;
      }),
    );
    const times = all.flatMap(({ done }) => done).sort((a, b) => a - b);
    const count = (name) => sum(all.map((each) => each[name]));
    const messages = new Map();
    for (const text of all.flatMap((each) => each.messages)) {
      const form = text
        .replace(/"[^"]*"/g, '""')
        .replace(/\d+/g, '#')
        .slice(0, 160);
      messages.set(form, (messages.get(form) ?? 0) + 1);
    }
    if (messages.size > 0) console.error(messages);
    const perSecond = Math.round((times.filter((time) => time > from && time < to).length * 1000) / (to - from));
    const numbers =
      what === 'read'
        ? { granted, lastAfter: Math.round((times.at(-1) ?? NaN) - start), lost: count('lost') }
        : { perSecond, served: all.filter(({ done }) => done.length > 0).length };
    return { ...numbers, grantedIn: Math.round(grantedIn), failed: count('failed'), cores: +cores.toFixed(2) };
  } finally {
    for (const member of members) member.kill('SIGKILL');
  }
}
