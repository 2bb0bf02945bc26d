// One key that very many processes want: so many read it and hold it for a minute, or take it in turns.
//
//   npm run bench:many -- --what read --processes 50,100,200,400
//   npm run bench:many -- --what take --processes 50,200 [--store postgres,redis,mysql,file --seconds 30]
//
// 400 processes need 16 GB, and each core of the machine. `cores`: how many were in use, by whatever program.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startMariadb } from '../test/support/mariadb-server.js';
import { startPostgres } from '../test/support/postgres-server.js';
import { clock, sleep } from './measure/clock.mjs';
import { startRedis } from './measure/redis.mjs';

const program = fileURLToPath(new URL('stores/reader.mjs', import.meta.url));
const { values: flags } = parseArgs({
  options: {
    what: { type: 'string', default: 'read' },
    processes: { type: 'string', default: '50,100,200' },
    store: { type: 'string', default: 'postgres' },
    seconds: { type: 'string', default: '60' },
  },
});
const LONGEST = 60_000;
/** Milliseconds for all to queue. */
const SETTLING = 5000;
/** Processes that start at a time. */
const STARTING = 4;

const busy = () => cpus().reduce((sum, { times }) => sum + times.user + times.sys, 0);

for (const store of flags.store.split(',')) {
  for (const processes of flags.processes.split(',').map(Number)) {
    const server = await open(store);
    try {
      console.log(JSON.stringify({ store, what: flags.what, processes, ...(await measure(store, server.place, processes)) }));
    } finally {
      await server.stop();
    }
  }
}

async function open(store) {
  if (store === 'file') {
    const place = mkdtempSync(join(tmpdir(), 'bench-many-'));
    return { place, stop: () => rmSync(place, { recursive: true, force: true }) };
  }
  if (store === 'redis') {
    const redis = await startRedis();
    return { place: `redis://127.0.0.1:${redis.port}`, stop: () => redis.stop() };
  }
  if (store === 'mysql') {
    const mariadb = await startMariadb({ port: 'free', durable: true, args: ['--max-connections=3000'] });
    const { default: mysql } = await import('mysql2/promise');
    const client = await mysql.createConnection(mariadb.connection);
    await client.query('CREATE DATABASE bench');
    await client.end();
    return { place: `mysql://root@127.0.0.1:${mariadb.port}/bench`, stop: () => mariadb.stop() };
  }
  const postgres = await startPostgres({ port: 'free', durable: true, config: ['max_connections = 3000'] });
  return { place: postgres.url, stop: () => postgres.stop() };
}

async function measure(store, place, processes) {
  const members = [];
  let granted = 0;
  try {
    while (members.length < processes) {
      const some = Array.from({ length: Math.min(STARTING, processes - members.length) }, () =>
        fork(program, [JSON.stringify({ store, place, what: flags.what })], { execArgv: ['--max-semi-space-size=2'] }),
      );
      members.push(...some);
      await Promise.all(some.map((member) => once(member, 'message')));
    }
    await sleep(2000);
    for (const member of members) member.on('message', (message) => message === 'granted' && granted++);
    const begin = clock();
    const before = busy();
    for (const member of members) member.send('begin');
    if (flags.what === 'read') while (granted < processes && clock() - begin < LONGEST) await sleep(50);
    const grantedIn = clock() - begin;
    if (flags.what === 'take') await sleep(SETTLING);
    const from = clock();
    await sleep(Number(flags.seconds) * 1000);
    const to = clock();
    const cores = (busy() - before) / (clock() - begin);
    const all = await Promise.all(
      members.map(async (member) => {
        const result = new Promise((resolve) => member.on('message', (message) => typeof message === 'object' && resolve(message)));
        member.send('end');
        return result;
      }),
    );
    const times = all.flatMap(({ done }) => done).sort((a, b) => a - b);
    const count = (name) => all.reduce((sum, each) => sum + each[name], 0);
    const texts = new Map();
    for (const text of all.flatMap(({ messages }) => messages)) {
      const form = text
        .replace(/"[^"]*"/g, '""')
        .replace(/\d+/g, '#')
        .slice(0, 160);
      texts.set(form, (texts.get(form) ?? 0) + 1);
    }
    if (texts.size > 0) console.error(texts);
    const lasted = flags.what === 'read' ? { granted, lastAfter: Math.round((times.at(-1) ?? NaN) - begin), lost: count('lost') } : {};
    const rate =
      flags.what === 'take'
        ? { perSecond: Math.round((times.filter((time) => time > from && time < to).length * 1000) / (to - from)) }
        : {};
    const served = flags.what === 'take' ? { served: all.filter(({ done }) => done.length > 0).length } : {};
    return { ...lasted, ...rate, ...served, grantedIn: Math.round(grantedIn), failed: count('failed'), cores: +cores.toFixed(2) };
  } finally {
    for (const member of members) member.kill('SIGKILL');
  }
}
