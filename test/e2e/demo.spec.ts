import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { sharedPostgres } from '../support/shared-server.js';
import { startDemo } from './demo.js';
import { urlOf } from './shops.js';

/** The table's rows: version → column → number. */
function rowsOf(stdout: string): Record<string, Record<string, number>> {
  const lines = stdout.split('\n').filter((line) => /^(version|none|local|naive|lock) +(requests|\d)/.test(line));
  const [names, ...rows] = lines.map((line) => line.trim().split(/ {2,}/));
  return Object.fromEntries(
    rows.map(([version, ...cells]) => [version, Object.fromEntries(cells.map((cell, i) => [names![i + 1], Number(cell)]))]),
  );
}

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

/** A PATH with the programs of ours, one left out. */
function pathWithout(program: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'path-'));
  folders.push(folder);
  for (const from of process.env.PATH!.split(delimiter).filter((each) => existsSync(each))) {
    for (const name of readdirSync(from))
      if (name !== program && !existsSync(join(folder, name))) symlinkSync(join(from, name), join(folder, name));
  }
  return folder;
}

/** Of the nodes of the Cluster that it says to use. */
function portsOf(stdout: string): number[] {
  const [, nodes = ''] = /whose three nodes are (.+)\./.exec(stdout) ?? [];
  return [...nodes.matchAll(/:(\d+)/g)].map(([, port]) => Number(port));
}

/** Whether somebody listens there. */
function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false)).once('connect', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}

jest.setTimeout(90_000);

describe('the demo', () => {
  let server: RedisServer;
  let client: ReturnType<RedisServer['client']>;

  beforeAll(async () => {
    server = await startRedis();
    client = server.client();
  });

  afterAll(async () => {
    await server.stop();
  });

  const exact = { requests: 120, errors: 0, sold: 60, left: 0, oversold: 0 };

  it('shows on Redis that all but the lock oversell, ends with 0, and leaves no key', async () => {
    const run = startDemo('demo.mjs', '--requests 120 --concurrency 60 --instances 2 --work 10 --skus 2', { REDIS_URL: urlOf(server) });
    expect({ code: await run.ended, stderr: run.stderr }).toMatchObject({ code: 0 });
    expect(run.stdout).toContain('Store: the Redis of REDIS_URL');
    const { none, local, lock, ...others } = rowsOf(run.stdout);
    expect(Object.keys(others)).toEqual(['naive']);
    expect(lock).toMatchObject(exact);
    expect(none!.oversold).toBeGreaterThan(0);
    expect(local!.oversold).toBeGreaterThan(0);
    expect(await client.dbsize()).toBe(0);
  });

  it('shows the same on a Postgres of yours, and leaves no schema', async () => {
    const { url, connection } = await sharedPostgres();
    const env = { REDIS_URL: '', DATABASE_URL: url };
    const run = startDemo('demo.mjs', '--requests 120 --concurrency 60 --instances 2 --work 10 --skus 2', env);
    expect({ code: await run.ended, stderr: run.stderr }).toMatchObject({ code: 0 });
    expect(run.stdout).toContain('Store: the Postgres of DATABASE_URL');
    const { none, lock } = rowsOf(run.stdout);
    expect(lock).toMatchObject(exact);
    expect(none!.oversold).toBeGreaterThan(0);
    const postgres = new Client(connection);
    await postgres.connect();
    const { rows } = await postgres.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'demo_%'");
    await postgres.end();
    expect(rows).toEqual([]);
  });

  it('shows the same on a Redis Cluster of its own, whose servers end with it', async () => {
    const run = startDemo('demo.mjs', '--store cluster --requests 120 --concurrency 60 --instances 2 --work 10 --skus 4', {
      REDIS_URL: '',
    });
    expect({ code: await run.ended, stderr: run.stderr }).toMatchObject({ code: 0 });
    const { none, lock } = rowsOf(run.stdout);
    expect(lock).toMatchObject(exact);
    expect(none!.oversold).toBeGreaterThan(0);
    const ports = portsOf(run.stdout);
    expect(ports).toHaveLength(3);
    expect(await Promise.all(ports.map(isTaken))).toEqual([false, false, false]);
  });

  it('leaves no server of its Cluster behind when it is killed', async () => {
    const run = startDemo('demo.mjs', '--store cluster --requests 1000 --concurrency 10 --instances 1 --work 600000', { REDIS_URL: '' });
    await eventually(() => portsOf(run.stdout).length === 3, { within: 40_000 });
    const ports = portsOf(run.stdout);
    expect(await Promise.all(ports.map(isTaken))).toEqual([true, true, true]);
    run.child.kill('SIGKILL');
    await run.ended;
    for (const port of ports) await eventually(async () => !(await isTaken(port)));
  });

  it('says what to install where there is no server for a Cluster', async () => {
    const run = startDemo('demo.mjs', '--store cluster', { REDIS_URL: '', PATH: '/nowhere' });
    expect(await run.ended).toBe(1);
    expect(run.stderr).toBe(
      '--store cluster needs a redis-server on the PATH, and there is none. Install it:\n' +
        '  Debian, Ubuntu  apt-get install redis-server\n' +
        '  macOS           brew install redis\n',
    );
  });

  it('says which stores there are', async () => {
    const run = startDemo('demo.mjs', '--store mongo');
    expect(await run.ended).toBe(1);
    expect(run.stderr).toMatch(/^--store \(or STORE\) is one of redis, cluster, postgres, file, not mongo\.$/m);
  });

  it('shows in files and without any server that all but the lock oversell, and says why it uses files', async () => {
    const run = startDemo('demo.mjs', '--requests 240 --concurrency 60 --instances 3 --work 10 --skus 2', {
      REDIS_URL: '',
      DATABASE_URL: '',
      PATH: pathWithout('redis-server'),
    });
    expect({ code: await run.ended, stderr: run.stderr }).toMatchObject({ code: 0 });
    const [, folder] = /^Store: files of this machine, in (.+), as there is neither REDIS_URL nor a redis-server on the PATH\.$/m.exec(
      run.stdout,
    )!;
    expect(existsSync(folder!)).toBe(false);
    const { none, local, lock } = rowsOf(run.stdout);
    expect(lock).toMatchObject({ requests: 240, errors: 0, sold: 120, left: 0, oversold: 0 });
    expect(none!.oversold).toBeGreaterThan(0);
    expect(local!.oversold).toBeGreaterThan(0);
  });

  it('ends with 1 when going without a lock does no harm, as it then shows nothing', async () => {
    const run = startDemo('demo.mjs', '--store file --requests 10 --concurrency 1 --skus 1');
    expect(await run.ended).toBe(1);
    expect(run.stderr).toContain('none: did not oversell');
  });

  it('ends what it started and removes its keys on Ctrl-C', async () => {
    const run = startDemo('demo.mjs', '--requests 1000 --concurrency 10 --instances 1 --work 600000', { REDIS_URL: urlOf(server) });
    await eventually(async () => (await client.dbsize()) > 0, { within: 15_000 });
    run.child.kill('SIGINT');
    expect(await run.ended).toBe(130);
    expect(await client.dbsize()).toBe(0);
  });
});
