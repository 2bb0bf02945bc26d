// A Redis Cluster of three nodes over one server, in the same run: a hand-over between two processes, the waits of a crowd, and the CPU of renewals.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCluster } from '../test/support/redis-cluster.ts';
import { begin } from './measure/begin.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { printRounds, rounds } from './measure/rounds.mjs';
import { quantile, sum } from './measure/statistics.mjs';
import { judgeServers, ratiosOf } from './report/servers.mjs';
import { writeResults } from './report/write.mjs';
import { crowd } from './stores/crowd.mjs';
import { openStore } from './stores/open.mjs';

const TURNS = 1000;
const LEASES = 10_000;
/** Bytes of a message between nodes, without the channel and the text: its header has the map of all slots. */
const BUS_HEADER = 2264;
const program = fileURLToPath(new URL('stores/alternate.mjs', import.meta.url));

const { write } = await begin('cluster [options]\n  --write   keeps the results', { flags: ['write'] });
const folder = mkdtempSync(join(tmpdir(), 'bench-cluster-'));
const [single, cluster] = await Promise.all([startRedis(), startCluster()]);
const places = {
  'one server': { store: 'redis', place: single.url, servers: [single] },
  'Redis Cluster': { store: 'redis cluster', place: cluster.addresses, servers: cluster.masters },
};
const results = { ratios: {} };
try {
  results.machine = await describeMachine(single);
  report('handOver', 'hand-over between two processes, p50 in ms', 3, await rounds(places, handOver, 5));
  const waits = await rounds(
    places,
    ({ store, place }) => crowd({ store, place, counter: join(folder, 'counter'), processes: 2, callers: 25, turns: 20 }),
    5,
  );
  const p99s = Object.fromEntries(Object.entries(waits).map(([name, all]) => [name, all.map(({ p99 }) => p99)]));
  report('wait', 'wait of 2 × 25 callers, p99 in ms', 1, p99s);
  report('renewals', `${LEASES} renewals, CPU of client and servers in ms`, 0, await rounds(places, renewals, 5));
  await busOfHandOvers();
} finally {
  await Promise.all([single.stop(), cluster.stop()]);
  rmSync(folder, { recursive: true });
}
console.log(judgeServers({ cluster: results }));
if (write) await writeResults('cluster', results);

/** The median of the milliseconds from one process in to the other in. */
async function handOver({ store, place }) {
  const order = JSON.stringify({ store, place, turns: TURNS });
  const members = [0, 1].map(() => fork(program, [order], { execArgv: [] }));
  await Promise.all(members.map((member) => once(member, 'message')));
  const results = members.map((member) => once(member, 'message'));
  for (const member of members) member.send('begin');
  const all = (await Promise.all(results)).flatMap(([times], process) => times.map((at) => ({ at, process })));
  all.sort((a, b) => a.at - b.at);
  const between = all.flatMap((one, i) => (i > 0 && one.process !== all[i - 1].process ? [one.at - all[i - 1].at] : []));
  if (between.length < TURNS) throw new Error(`${store}: only ${between.length} of ${2 * TURNS} turns went to the other process`);
  return quantile(between, 0.5);
}

async function renewals({ store: name, place, servers }) {
  // All of them at once, also on a slow machine.
  const store = await openStore(name, place, { requestTimeout: 30_000 });
  const { mutex } = store;
  const batch = Array.from({ length: LEASES }, (_, i) => ({ key: `order:${i}`, owner: `bench@host:1:${i}`, ttl: 600_000 }));
  await Promise.all(batch.map((lease) => mutex.acquire({ ...lease, tokens: 1, queue: false })));
  const renew = async () => {
    const replies = await Promise.all(mutex.renew(batch));
    if (replies.includes('lost')) throw new Error(`${name} lost a lease`);
  };
  await renew();
  const before = { servers: cpuOf(servers), client: process.cpuUsage() };
  for (let i = 0; i < 5; i++) await renew();
  const { user, system } = process.cpuUsage(before.client);
  const spent = (user + system) / 1000 + cpuOf(servers) - before.servers;
  await Promise.all(batch.map(({ key, owner }) => mutex.release({ key, owner, keepFor: 0 })));
  await store.close();
  return spent / 5;
}

/** Milliseconds, by the kernel's clock of a hundred ticks a second. */
function cpuOf(servers) {
  return sum(
    servers.map(({ pid }) => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    }),
  );
}

async function busOfHandOvers() {
  const clients = cluster.masters.map((node) => node.client());
  const sent = async () =>
    sum(
      await Promise.all(
        clients.map(async (client) => Number(/messages_publish_sent:(\d+)/.exec(await client.call('CLUSTER', 'INFO'))?.[1] ?? 0)),
      ),
    );
  const before = await sent();
  await handOver(places['Redis Cluster']);
  const messages = ((await sent()) - before) / (2 * (TURNS + 200));
  for (const client of clients) client.disconnect();
  console.log(`bus of 3 nodes: ${messages.toFixed(1)} messages of at least ${BUS_HEADER} bytes for each turn`);
}

function report(key, title, digits, measured) {
  const [base, ours] = Object.values(measured);
  results.ratios[key] = ratiosOf(ours, base);
  printRounds(title, measured, digits);
}
