// Clients of packages that are too old: npm lets an app have them.
import { LockConfigError, Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { Pool } from 'pg';
import { checkClient } from '../../lib/core/store/check-client.js';
import packages from '../../lib/core/store/client-packages.cjs';
import { rejection } from '../support/rejection.js';

/** What each of them does when it is used first. It reaches no server. */
const USES: [name: keyof typeof packages.supported, user: string, use: () => unknown][] = [
  ['ioredis', 'redisStore', () => redisStore({ url: 'redis://127.0.0.1:1' })],
  ['pg', 'postgresStore', () => acquire(postgresStore({ url: 'postgres://127.0.0.1:1/shop' }))],
  ['mysql2', 'mysqlStore', () => mysqlStore({ url: 'mysql://127.0.0.1:1/shop' })],
  ['node-zookeeper-client', 'zookeeperStore', () => acquire(zookeeperStore({ connectionString: '127.0.0.1:1' }))],
  ['prom-client', 'prometheus', () => prometheus()],
  ['@opentelemetry/api', 'openTelemetry', () => openTelemetry()],
];

async function acquire(store: ConstructorParameters<typeof Locks>[0]): Promise<unknown> {
  const locks = new Locks(store);
  try {
    return await locks.tryAcquire('order:42');
  } finally {
    await locks.close();
  }
}

const errorOf = (use: () => unknown) => rejection((async () => use())());

/** The version before the oldest one that is supported. */
function before(name: keyof typeof packages.supported): string {
  const [major = 0, minor = 0, patch = 0] = /\d[\d.]+/.exec(packages.supported[name])![0].split('.').map(Number);
  return patch > 0 ? `${major}.${minor}.${patch - 1}` : minor > 0 ? `${major}.${minor - 1}.99` : `${major - 1}.99.99`;
}

afterEach(() => jest.restoreAllMocks());

describe.each(USES)('%s', (name, user, use) => {
  const [oldest] = /\d[\d.]+/.exec(packages.supported[name])!;

  it('of a version that is too old is refused by an error that names it and the one that is needed', async () => {
    jest.spyOn(packages, 'installedVersion').mockImplementation((each) => (each === name ? before(name) : undefined));
    const error = await errorOf(use);
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).toContain(
      `${user}: ${name} ${before(name)} is too old: version ${oldest} or later is needed. [LOCK_CONFIG_STORE]`,
    );
  });

  it.each([
    ['the oldest that is supported', oldest],
    ['a later minor version', oldest.replace(/\.\d+/, '.10')],
    ['one that cannot be read', undefined],
  ])('of %s is not refused', async (_, version) => {
    jest.spyOn(packages, 'installedVersion').mockReturnValue(version);
    const result = await (async () => use())().catch((error: unknown) => error);
    expect(result).not.toBeInstanceOf(LockConfigError);
    if (result && typeof result === 'object' && 'close' in result) await (result as { close(): Promise<void> }).close();
  });
});

describe('a client whose version cannot be read', () => {
  it('is judged by what it can do', () => {
    jest.spyOn(packages, 'installedVersion').mockReturnValue(undefined);
    expect(() => checkClient('redisStore', 'ioredis', true)).not.toThrow();
    expect(() => checkClient('redisStore', 'ioredis', false)).toThrow(
      'redisStore: this version of ioredis is too old: version 5.3.0 or later is needed. [LOCK_CONFIG_STORE]',
    );
  });
});

describe('a client that an app lends', () => {
  it('is not refused because another copy of its package is old', () => {
    jest.spyOn(packages, 'installedVersion').mockReturnValue('1.0.0');
    expect(() => checkClient('postgresStore', 'pg', true, true)).not.toThrow();
  });

  it('is refused if it cannot do what is needed, whichever version is installed', () => {
    jest.spyOn(packages, 'installedVersion').mockReturnValue('99.0.0');
    expect(() => checkClient('postgresStore', 'pg', false, true)).toThrow('postgresStore: this version of pg is too old');
  });

  it('may be a pool of pg whose clients keep the process alive, which is refused at once', () => {
    class Client {}
    const pool = Object.assign(new Pool(), { Client });
    expect(() => postgresStore({ pool: pool as never })).toThrow(/^postgresStore: .*pg .*too old: version 8\.7\.0 or later is needed/);
    expect(() => postgresStore({ pool: new Pool() })).not.toThrow();
  });
});

describe('the version of an installed package', () => {
  it('is read also where the package does not let its package.json be loaded', () => {
    const { installedVersion } = packages;
    for (const name of Object.keys(packages.supported)) expect(installedVersion(name)).toMatch(/^\d+\.\d+\.\d+/);
    expect(installedVersion('not-installed')).toBeUndefined();
  });
});
