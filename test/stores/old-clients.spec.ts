// Clients of packages that are too old: npm lets an app have them.
import { readFileSync } from 'node:fs';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { Pool } from 'pg';
import { OLDEST } from '../../lib/core/store/check-client.js';
import { rejection } from '../support/rejection.js';

type Package = Record<string, unknown>;

async function asks(store: LockStore): Promise<void> {
  const { Locks } = await import('nestjs-distributed-lock/core');
  const locks = new Locks(store, { logger: false });
  await locks.tryAcquire('order:42').finally(() => locks.close());
}

/** What a version has in place of what is needed, and the first use of it by this package. No use reaches a server. */
const USES: [module: string, user: string, old: (real: Package) => Package, use: () => Promise<unknown>][] = [
  [
    'ioredis',
    'redisStore',
    () => ({}),
    async () => (await import('nestjs-distributed-lock/redis')).redisStore({ url: 'redis://127.0.0.1:1' }),
  ],
  [
    'pg',
    'postgresStore',
    () => ({ Client: class {}, Pool: class {} }),
    async () => asks((await import('nestjs-distributed-lock/postgres')).postgresStore({ url: 'postgres://127.0.0.1:1/shop' })),
  ],
  [
    'mysql2/promise',
    'mysqlStore',
    () => ({}),
    async () => (await import('nestjs-distributed-lock/mysql')).mysqlStore({ url: 'mysql://127.0.0.1:1/shop' }),
  ],
  [
    'node-zookeeper-client',
    'zookeeperStore',
    () => ({ createClient: () => ({}) }),
    async () => asks((await import('nestjs-distributed-lock/zookeeper')).zookeeperStore({ connectionString: '127.0.0.1:1' })),
  ],
  [
    'prom-client',
    'prometheus',
    (real) => ({ ...real, Gauge: class {} }),
    async () => (await import('nestjs-distributed-lock/prometheus')).prometheus(),
  ],
  [
    '@opentelemetry/api',
    'openTelemetry',
    ({ createNoopMeter: _, ...others }) => others,
    async () => (await import('nestjs-distributed-lock/opentelemetry')).openTelemetry(),
  ],
];

it.each(USES)(
  '%s of a version that is too old is refused by an error that names the one that is needed',
  async (module, user, old, use) => {
    const name = module.split('/promise')[0] as keyof typeof OLDEST;
    jest.doMock(module, () => old(jest.requireActual<Package>(module)));
    await jest.isolateModulesAsync(async () => {
      const error = (await rejection(use())) as Error;
      expect(error.name).toBe('LockConfigError');
      expect(error.message).toContain(
        `${user}: this version of ${name} is too old: version ${OLDEST[name]} or later is needed. [LOCK_CONFIG_STORE]`,
      );
    });
    jest.dontMock(module);
  },
);

it('a client that is there, and cannot be loaded, fails with its own error', () =>
  jest.isolateModulesAsync(async () => {
    jest.doMock('ioredis', () => JSON.parse('no module') as object);
    const { redisStore } = await import('nestjs-distributed-lock/redis');
    expect(() => redisStore({ url: 'redis://127.0.0.1:1' })).toThrow(SyntaxError);
  }));

it('a lent pool of pg whose clients keep the process alive is refused at once', () => {
  class Client {}
  const pool = Object.assign(new Pool(), { Client });
  expect(() => postgresStore({ pool: pool as never })).toThrow(/^postgresStore: .*pg .*too old: version 8\.7\.0 or later is needed/);
  expect(() => postgresStore({ pool: new Pool() })).not.toThrow();
});

it('the oldest versions are those that the package is tested with', () => {
  const supported = JSON.parse(readFileSync('scripts/supported-clients.json', 'utf8')) as Record<string, string>;
  const oldest = Object.entries(supported).map(([name, range]) => [name, /\d[\d.]+/.exec(range)![0]]);
  expect(OLDEST).toEqual(Object.fromEntries(oldest));
});
