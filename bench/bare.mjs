// Locks on Postgres, MariaDB, etcd, ZooKeeper and files next to what they must cost at least: two bare UPDATEs, transactions or setDatas, each a commit,
// or a file that is created and deleted.
//
//   npm run bench -- bare [-- --only postgres,mysql,etcd,zookeeper,file --busy]
import { unlink, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { Locks } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { fileStore } from 'nestjs-distributed-lock/file';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import zookeeper from 'node-zookeeper-client';
import pg from 'pg';
import { begin } from './measure/begin.mjs';
import { printRounds, rounds, timeOfPair } from './measure/rounds.mjs';
import { openPlace } from './stores/place.mjs';

const CALLERS = 256;
const CONNECTIONS = 4;
/** Milliseconds for which all callers are busy. */
const SPAN = 1000;

/** Openers by the name of the store: they resolve with it, what is bare for a caller, and how to end. `lone` and `many` are goals. */
const STORES = {
  async postgres(url) {
    const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    await pool.query('CREATE TABLE bare (key text PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 50)');
    await pool.query("INSERT INTO bare SELECT 'key ' || i, 0 FROM generate_series(0, $1::int - 1) i", [CALLERS]);
    const update = { name: 'bare', text: 'UPDATE bare SET n = n + 1 WHERE key = $1' };
    return {
      store: postgresStore({ url, schema: 'create', max: CONNECTIONS }),
      bare: twice((caller) => pool.query({ ...update, values: [`key ${caller}`] })),
      end: () => pool.end(),
      ...{ lone: 'at most 1.2', many: 'at least 4' },
    };
  },
  async mysql(url) {
    const pool = mysql.createPool({ uri: url, connectionLimit: CONNECTIONS });
    await pool.query('CREATE TABLE bare (id varbinary(100) PRIMARY KEY, n int NOT NULL) ENGINE = InnoDB');
    await pool.query('INSERT INTO bare VALUES ?', [Array.from({ length: CALLERS }, (_, i) => [`key ${i}`, 0])]);
    return {
      store: mysqlStore({ url, schema: 'create', max: CONNECTIONS }),
      bare: twice((caller) => pool.query('UPDATE bare SET n = n + 1 WHERE id = ?', [`key ${caller}`])),
      end: () => pool.end(),
      lone: 'at most 1.7',
    };
  },
  async etcd(url) {
    const agent = new Agent({ keepAlive: true });
    const value = 'x'.repeat(300);
    return {
      store: etcdStore({ endpoints: [url] }),
      bare: twice((caller) => transaction(url, agent, [base64(`bare/${caller}`)], base64(value))),
      end: async () => agent.destroy(),
      lone: 'at most 1.15',
    };
  },
  async zookeeper(place) {
    const client = zookeeper.createClient(place);
    await new Promise((resolve) => client.once('connected', resolve).connect());
    const value = Buffer.from('x'.repeat(300));
    const ask = (call) => new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())));
    for (let i = 0; i < CALLERS; i++) await ask((done) => client.create(`/bare-${i}`, value, done));
    return {
      store: zookeeperStore({ connectionString: place }),
      bare: twice((caller) => ask((done) => client.setData(`/bare-${caller}`, value, -1, done))),
      end: async () => client.close(),
      lone: 'at most 1.3',
    };
  },
  async file(directory) {
    return {
      store: fileStore({ directory: join(directory, 'locks') }),
      async bare(caller) {
        const path = join(directory, `bare-${caller}.lock`);
        await writeFile(path, 'owner', { flag: 'wx' });
        await unlink(path);
      },
      end: async () => undefined,
      lone: 'at most 0.5 ms',
    };
  },
};

const base64 = (text) => Buffer.from(text).toString('base64');
const twice = (update) => async (caller) => {
  for (let i = 0; i < 2; i++) await update(caller);
};

const ALL = Object.keys(STORES).join();
const { only } = await begin(`bare [options]\n  --only <stores>   ${ALL}`, { texts: { only: ALL } });
for (const name of only.split(',')) {
  const { place, stop } = await openPlace(name);
  const { store, bare, end, lone, many } = await STORES[name](place);
  const locks = new Locks(store, { logger: false });
  let fresh = 0;
  const work = {
    bare,
    ours: async (caller) => (await locks.acquire(`key ${caller}`)).release(),
    'ours, new keys': async () => (await locks.acquire(`new ${++fresh}`)).release(),
  };
  const ofOne = await rounds(work, (pair) => timeOfPair(() => pair(0), 400));
  printRounds(`${name}, a lone acquire and release, p50 in ms`, ofOne, 3, { base: 'bare', goals: { ours: lone } });
  const title = `${name}, ${CALLERS} callers of keys of their own, pairs/s over ${CONNECTIONS} connections`;
  if (name !== 'file') printRounds(title, await rounds(work, manyCallers, 5), 0, { base: 'bare', goals: { ours: many } });
  await Promise.all([locks.close(), end()]);
  await stop();
}

/** Puts these keys of etcd by a compare-and-set, in one request. */
function transaction(url, agent, keys, value) {
  const one = (key) => ({
    compare: [{ key, target: 'MOD', result: 'GREATER', mod_revision: '-1' }],
    success: [{ request_put: { key, value } }],
    failure: [{ request_range: { key } }],
  });
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v3/kv/txn`, { method: 'POST', agent }, (response) => {
      response
        .on('data', () => undefined)
        .on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(response.statusCode))));
    });
    sent
      .on('error', reject)
      .end(JSON.stringify(keys.length === 1 ? one(keys[0]) : { success: keys.map((key) => ({ request_txn: one(key) })) }));
  });
}

/** Pairs in a second of callers that each have a key. */
async function manyCallers(pair) {
  let pairs = 0;
  const start = performance.now();
  const end = start + SPAN;
  const caller = async (n) => {
    for (; performance.now() < end; pairs++) await pair(n);
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => caller(n)));
  return (pairs * 1000) / (performance.now() - start);
}
