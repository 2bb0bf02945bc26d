import { Locks } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { startRedis } from './measure/redis.mjs';
import { openRedlock } from './contestants/redlock-quorum.mjs';
const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
const ports = servers.map(({ port }) => port);
const storeOf = (port) => redisStore({ url: `redis://127.0.0.1:${port}` });
const one = new Locks(storeOf(ports[0]), { logger: false });
const stores = ports.map(storeOf);
const three = new Locks(quorumStore(stores, { quarantine: 0 }), { logger: false });
const redlock = openRedlock(ports, 0);
const raw = ports.map(storeOf);
let n = 0;
const all3 = (floor) => async () => {
  const owner = 'owner' + ++n; const q = { key: 'raw', owner, ttl: 10000, tokens: 1, queue: false, floor: floor && Math.ceil((performance.timeOrigin + performance.now()) * 1000) + 5000 };
  await Promise.all(raw.map((s) => s.mutex.acquire(q)));
  await Promise.all(raw.map((s) => s.mutex.release({ key: 'raw', owner, keepFor: 0 })));
};
const pairs = {
  one: async () => (await one.acquire('key')).release(),
  quorum: async () => (await three.acquire('key')).release(),
  redlock: async () => (await redlock.acquire('redlock')).release(),
  driver1: async () => { const owner = 'owner' + ++n; const q = { key: 'd1', owner, ttl: 10000, tokens: 1, queue: false }; await raw[0].mutex.acquire(q); await raw[0].mutex.release({ key: 'd1', owner, keepFor: 0 }); },
  all3plain: all3(0),
  all3floor: all3(5),
};
const only = process.argv[2]?.split(',') ?? Object.keys(pairs);
const times = Object.fromEntries(only.map((k) => [k, []]));
const N = Number(process.argv[3] ?? 10);
for (const k of only) for (let i = 0; i < 400; i++) await pairs[k]();
for (let r = 0; r < N; r++) for (const k of only) for (let i = 0; i < 200; i++) { const s = performance.now(); await pairs[k](); times[k].push(performance.now() - s); }
for (const s of servers) console.log((await s.client.info('commandstats')).split('\n').filter(l=>/eval|set|time|exists|get/.test(l)).map(l=>l.replace(/,rejected.*/,'')).join(' '));
for (const k of only) { const t = times[k].sort((a, b) => a - b); console.log(k.padEnd(10), t[t.length >> 1].toFixed(3), 'p25', t[t.length >> 2].toFixed(3)); }
await Promise.all([one.close(), three.close(), ...raw.map((s) => s.close())]); redlock.close(); for (const s of servers) s.stop();
