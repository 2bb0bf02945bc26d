import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { forkChild } from './child.js';
import type { Started } from './database-server.child.js';
import { eventually } from './eventually.js';
import { isAlive } from './is-alive.js';
import { startMariadb, type MariadbServer } from './mariadb-server.js';
import { startPgbouncer } from './pgbouncer.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';
import { sharedMariadb, sharedPostgres } from './shared-server.js';

const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

async function use<Server extends { stop(): Promise<void> }>(starting: Promise<Server>): Promise<Server> {
  const server = await starting;
  started.push(server);
  return server;
}

/** One query over a connection of its own. */
async function ask(url: string, text: string): Promise<unknown[]> {
  if (url.startsWith('mysql')) {
    const client = await mysql.createConnection(url);
    const [rows] = await client.query(text).finally(() => client.end());
    return rows as unknown[];
  }
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(text).finally(() => client.end());
  return rows as unknown[];
}

/** The process and its children. */
function processesOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid='], { encoding: 'utf8' }).trim().split('\n');
  const pairs = lines.map((line) => line.trim().split(/\s+/));
  return pairs.filter((pair) => pair.includes(String(pid))).map(([own]) => Number(own));
}

const servers: Record<string, (options?: { port?: number | 'free' }) => Promise<MariadbServer | PostgresServer>> = {
  postgres: startPostgres,
  mariadb: startMariadb,
};

describe.each(['postgres', 'mariadb'])('a private %s', (which) => {
  const start = servers[which]!;

  it('listens on a unix socket of its own, or on a port if told to', async () => {
    const [one, other, onPort] = [await use(start()), await use(start()), await use(start({ port: 'free' }))];
    await ask(one.url, 'CREATE SCHEMA mine');
    for (const server of [other, onPort]) await ask(server.url, 'CREATE SCHEMA mine');
    expect(one.port).toBeUndefined();
    expect(onPort.connection).toMatchObject({ host: '127.0.0.1', port: onPort.port });
  });

  it('never takes the port of somebody else', async () => {
    const { port } = await use(start({ port: 'free' }));
    await expect(start({ port })).rejects.toThrow(/Address already in use/i);
  });

  it('keeps what was committed when it is killed and started again, at the same address', async () => {
    const server = await use(start());
    await ask(server.url, 'CREATE SCHEMA mine');
    await server.kill();
    await expect(ask(server.url, 'SELECT 1')).rejects.toThrow();
    await server.restart();
    await expect(ask(server.url, 'CREATE SCHEMA mine')).rejects.toThrow(/exists/);
  });

  it('answers nothing while it is paused', async () => {
    const server = await use(start());
    server.pause();
    let answered = false;
    const answer = ask(server.url, 'SELECT 1').then(() => (answered = true));
    const states = execFileSync('ps', ['-o', 'state=', '-p', processesOf(server.pid).join()], { encoding: 'utf8' })
      .trim()
      .split(/\s+/);
    expect(new Set(states)).toEqual(new Set(['T']));
    expect(answered).toBe(false);
    server.resume();
    await answer;
  });

  it.each(['running', 'paused'])('dies with the process that started it, when %s', async (state) => {
    const owner = await forkChild<Started>('test/support/database-server.child.ts', { args: [which, state] });
    const { pid, data } = await owner.waitFor('started');
    const processes = processesOf(pid);
    await owner.kill('SIGKILL');
    await eventually(() => !processes.some(isAlive));
    await eventually(() => !existsSync(dirname(data)));
  });
});

describe('a standby of Postgres', () => {
  it('follows its primary, and takes writes when it is promoted', async () => {
    const primary = await use(startPostgres());
    const standby = await use(primary.standby());
    await ask(primary.url, 'CREATE SCHEMA mine');
    await eventually(
      async () => (await ask(standby.url, "SELECT to_regnamespace('mine') AS mine WHERE to_regnamespace('mine') IS NOT NULL")).length === 1,
    );
    await expect(ask(standby.url, 'CREATE SCHEMA other')).rejects.toThrow('read-only');
    await primary.kill();
    await standby.promote();
    await ask(standby.url, 'CREATE SCHEMA other');
  });
});

describe('pgbouncer', () => {
  it('shares one connection of the server between clients, transaction by transaction', async () => {
    const server = await use(startPostgres());
    const bouncer = await use(startPgbouncer({ to: server.connection, config: ['default_pool_size = 1'] }));
    const [one, other] = await Promise.all([
      ask(bouncer.url, 'SELECT pg_backend_pid() AS pid'),
      ask(bouncer.url, 'SELECT pg_backend_pid() AS pid'),
    ]);
    expect(one).toEqual(other);
  });
});

describe('a shared server', () => {
  it.each([
    ['postgres', sharedPostgres, 'SELECT current_database() AS name'],
    ['mariadb', sharedMariadb, 'SELECT database() AS name'],
  ] as const)('gives a test file a database of its own: %s', async (_, shared, which) => {
    const { connection, url } = await shared();
    expect(await ask(url, which)).toEqual([{ name: connection.database }]);
    expect(await shared()).toEqual({ connection, url });
  });
});
