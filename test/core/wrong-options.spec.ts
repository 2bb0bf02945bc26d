// Whoever takes options refuses those that it does not know, and values of another kind, and says where and what it must be.
import '../support/virtual-time.js';
import { CronLock, DistributedLock, DistributedLockModule, LeaderOnly, ReadLock, Semaphore, WriteLock } from 'nestjs-distributed-lock';
import { LockConfigError, Locks, runStandby } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { fileStore } from 'nestjs-distributed-lock/file';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { inspect } from 'node:util';
import pg from 'pg';

type Taker = (options: never) => unknown;
type Untyped = (...args: unknown[]) => MethodDecorator;
const [locks, body, store] = [new Locks(memoryStore()), jest.fn(), memoryStore()];
afterAll(() => expect(body).not.toHaveBeenCalled());

function define(decorator: MethodDecorator) {
  class Shop {
    @decorator
    async buy(..._args: unknown[]) {
      body();
    }
  }
  return Shop;
}
const whole = (required: object, options: unknown) => (typeof options === 'object' && options ? { ...required, ...options } : options);
const standby = { locks, name: 'app', create: () => undefined, start: () => undefined };

/** As a caller without types sees them, with the options that each needs. */
const TAKERS = {
  'locks.using': (options) => locks.using('key', body, options),
  'mutex.using': (options) => locks.mutex('key').using(body, options),
  'locks.acquire': (options) => locks.acquire('key', options),
  'locks.tryAcquire': (options) => locks.tryAcquire('key', options),
  'the defaults of Locks': (defaults) => new Locks(store, { defaults }),
  'the defaults of the module': (defaults) => DistributedLockModule.forRoot({ store, defaults }),
  '@DistributedLock': (options) => define((DistributedLock as Untyped)(options)),
  '@ReadLock': (options) => define((ReadLock as Untyped)(options)),
  '@WriteLock': (options) => define((WriteLock as Untyped)(options)),
  '@Semaphore': (options) => define((Semaphore as Untyped)(whole({ permits: 5 }, options))),
  '@CronLock': (options) => define((CronLock as Untyped)(whole({ minHold: 5 }, options))),
  '@LeaderOnly': (options) => define((LeaderOnly as Untyped)('jobs', options)),
  Locks: (options) => new Locks(store, options),
  'locks.readWriteLock': (options) => locks.readWriteLock('key', options),
  'locks.semaphore': (options) => locks.semaphore('key', whole({ permits: 5 }, options) as never),
  'locks.leaderElection': (options) => locks.leaderElection('jobs', options),
  'election.run': (options) => locks.leaderElection('jobs').run(body, options),
  'locks.countDownLatch': (options) => locks.countDownLatch('key', options),
  'latch.await': (options) => locks.countDownLatch('key').await(options),
  'locks.list': (options) => locks.list(options)[Symbol.asyncIterator]().next(),
  'locks.forceRelease': (options) => locks.forceRelease('key', whole({ reason: 'stuck' }, options) as never),
  runStandby: (options) => runStandby(whole(standby, options) as never),
  redisStore: (options) => redisStore(whole({ options: { path: '/nowhere' } }, options) as never),
} satisfies Record<string, Taker>;
type Name = keyof typeof TAKERS;

const USING: Name[] = ['locks.using', 'mutex.using', 'the defaults of Locks'];
const CALLS: Name[] = [...USING, 'locks.acquire', 'locks.tryAcquire'];
const LOCKS: Name[] = ['@DistributedLock', '@ReadLock', '@WriteLock', '@Semaphore'];
const METHODS: Name[] = [...LOCKS, 'the defaults of the module'];
const LEADER: Name[] = ['@LeaderOnly', 'runStandby', 'locks.leaderElection'];
const DECORATORS: Name[] = [...METHODS, '@CronLock', '@LeaderOnly'];
const ALL = Object.keys(TAKERS) as Name[];

/** The message by which a call, or what it resolves to, is refused. */
async function refusalOf(act: () => unknown): Promise<string> {
  const error: unknown = await (async () => act())().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockConfigError);
  return (error as LockConfigError).message;
}
const refusal = (taker: Name, options: unknown) => refusalOf(() => TAKERS[taker](options as never));
/** What is at fault, at the begin of what it must be. */
const subject = (taker: Name) =>
  taker.startsWith('@') ? `${taker}() on Shop.buy: ` : taker.startsWith('the defaults') ? '"defaults": ' : '';

const NOT_WHOLE = [1.5, -1, NaN, -Infinity, 2 ** 53, '500', '', null, true, 5n, {}, [5], Symbol('five'), () => 5, Object.create(null)];
const NOT_TEXT = [5, null, false, {}, ['a'], Symbol('a'), () => 'a'];
const REQUEST_TIMES = [0, -1, 1.5, NaN, Infinity, 2 ** 53, '500', null, true, 5n, {}];

it.each<[option: string, values: unknown[], takers: Name[]]>([
  ['keyTimeout', [0, 9, Infinity, ...NOT_WHOLE], [...CALLS, ...METHODS, ...LEADER]],
  ['retryCount', [Infinity, ...NOT_WHOLE], [...CALLS, ...METHODS]],
  ['retryInterval', [0, Infinity, ...NOT_WHOLE], [...CALLS, ...METHODS, ...LEADER]],
  ['waitTimeout', NOT_WHOLE, [...CALLS, ...METHODS, 'latch.await']],
  ['minHold', [Infinity, ...NOT_WHOLE], [...CALLS, ...METHODS]],
  ['minHold', [0, undefined], ['@CronLock']],
  ['maxHold', [0, Infinity, ...NOT_WHOLE], [...CALLS, ...METHODS, 'locks.leaderElection']],
  ['reentrant', ['true', 0, 1, null, {}], [...CALLS, ...METHODS]],
  ['fair', ['yes', 0, null, []], [...CALLS, ...METHODS]],
  ['renew', ['no', 0, null], [...CALLS, ...METHODS]],
  ['label', [5, null, {}], [...CALLS, ...METHODS]],
  ['onTimeout', ['ignore', 'Throw', '', null, true, 5, {}], [...USING, ...METHODS]],
  ['onLost', ['skip', '', null, false, () => 'a'], [...USING, ...METHODS, '@LeaderOnly']],
  [
    'signal',
    [{}, null, new AbortController(), 'signal'],
    [...CALLS.filter((name) => !name.startsWith('the')), 'election.run', 'latch.await'],
  ],
  ['prefix', NOT_TEXT, METHODS],
  ['value', NOT_TEXT, METHODS],
  ['store', NOT_TEXT, [...METHODS, '@LeaderOnly']],
  ['key', ['sku', '', 5, null, {}, ['0']], METHODS],
  ['paramLock', ['true', '0', 1, null, {}, [], [0], [''], ['a'], ['0.'], ['0..id'], ['00'], ['-1'], [' 0'], ['0', null]], METHODS],
  ['returns', ['stream', 'Promise', '', 5, null, true], [...METHODS, '@LeaderOnly']],
  ['policy', ['', 'reader', null, true, 1, {}, Object.create(null), Symbol('fair')], ['@ReadLock', '@WriteLock', 'locks.readWriteLock']],
  ['permits', [0, Infinity, undefined, 1_000_001, ...NOT_WHOLE], ['@Semaphore', 'locks.semaphore']],
  ['count', [0, 6, Infinity, ...NOT_WHOLE], ['@Semaphore', 'locks.semaphore']],
  ['timeToLive', [0, Infinity, ...NOT_WHOLE], ['locks.countDownLatch']],
  ['pattern', ['', ...NOT_TEXT], ['locks.list']],
  ['state', ['busy', null], ['locks.list']],
  ['limit', [0, ...NOT_WHOLE], ['locks.list']],
  ['olderThan', NOT_WHOLE, ['locks.list']],
  ['reason', ['', undefined, 'x'.repeat(4_097), ...NOT_TEXT], ['locks.forceRelease']],
  ['by', ['x'.repeat(257), ...NOT_TEXT], ['locks.forceRelease']],
  ['owner', ['kept:shop@pod:1:id', ...NOT_TEXT], ['locks.forceRelease']],
  ['grace', NOT_WHOLE, ['locks.forceRelease']],
  ['namespace', [5, null, {}, ['a']], ['Locks']],
  ['shutdownTimeout', [Infinity, ...NOT_WHOLE], ['Locks']],
  ['shutdownTimeout', [-1], ['runStandby']],
  ['slowWait', [0, -1, 1.5, '5'], ['Locks']],
  ['logger', [{}, { warn: () => undefined }, 'console', true, 5], ['Locks']],
  ['locks', [undefined], ['runStandby']],
  ['create', [undefined], ['runStandby']],
  ['start', [3000], ['runStandby']],
  ['requestTimeout', REQUEST_TIMES, ['redisStore']],
  ['fenceTimeout', REQUEST_TIMES, ['redisStore']],
])('"%s" must have a value of its kind', async (option, values, takers) => {
  for (const taker of takers)
    for (const value of values) expect(await refusal(taker, { [option]: value })).toContain(`${subject(taker)}"${option}" must be `);
});

it.each<[takers: Name[], names: string]>([
  [ALL, 'keyTimeOut ttl election toString __proto__x constructor'],
  [['locks.acquire', 'locks.tryAcquire'], 'onTimeout onLost'],
  [[...CALLS, 'Locks', 'redisStore'], 'store'.concat(' permits')],
  [['the defaults of Locks', ...DECORATORS], 'signal'],
  [['the defaults of the module', '@DistributedLock'], 'policy permits count'],
  [['@ReadLock', '@WriteLock'], 'permits count'],
  [['@Semaphore'], 'policy'],
  [['@CronLock'], 'waitTimeout retryCount retryInterval onTimeout policy permits'],
  [['@LeaderOnly'], 'prefix value key paramLock onTimeout waitTimeout retryCount minHold maxHold fair reentrant renew permits policy'],
  [['Locks'], 'nameSpace keyTimeout'],
  [['runStandby'], 'port'],
  [['redisStore'], 'timeout'],
])('%p know no option %s', async (takers, names) => {
  for (const taker of takers)
    for (const name of names.split(' ')) expect(await refusal(taker, { [name]: 1 })).toContain(`${subject(taker)}unknown option "${name}"`);
});

it.each(ALL)('the options of %s must be an object', async (taker) => {
  for (const options of [null, 'stock', 5, true])
    expect(await refusal(taker, options)).toMatch(/options must be an object|"defaults" must be/);
});

it('an inherited option is checked', async () => {
  expect(await refusal('locks.using', Object.create({ keyTimeout: 0 }))).toContain('"keyTimeout" must be');
});

it('the error has the name of the lock and what it must be', async () => {
  const error = refusalOf(() => locks.acquire('order:42', { keyTimeout: 0 }));
  expect(await error).toMatch(/order:42.*"keyTimeout" must be.*at least 10, not 0/);
});

describe('minHold', () => {
  it.each([...CALLS, ...METHODS])('must not be a minHold that is longer than maxHold: %s', async (taker) => {
    const message = `${subject(taker)}"minHold" (60000 ms) must not be longer than "maxHold" (59999 ms)`;
    expect(await refusal(taker, { minHold: 60_000, maxHold: 59_999 })).toContain(message);
  });

  it('must not be longer than the maxHold of the defaults', async () => {
    const mutex = new Locks(memoryStore(), { defaults: { maxHold: 4999 } }).mutex('key');
    for (const call of [mutex.acquire, mutex.tryAcquire, mutex.using.bind(mutex, body)])
      expect(await refusalOf(() => call.call(mutex, { minHold: 5000 }))).toContain('(5000 ms) must not be longer than "maxHold" (4999 ms)');
  });
});

describe('the error of an unknown option', () => {
  it('says what to write for a name of other libraries; else it names them all', async () => {
    const ofTimes = { keyTimeout: 'ttl lockTimeout expire leaseTime releaseTime duration', waitTimeout: 'timeout wait' };
    const ofTries = { retryCount: 'retries maxAttempts', retryInterval: 'retryDelay', "onTimeout: 'skip'": 'skip', renew: 'autoExtend' };
    for (const [option, names] of Object.entries({ ...ofTimes, ...ofTries, value: 'name lockKey resource', key: 'keys' }))
      for (const name of names.split(' '))
        expect(await refusal('@DistributedLock', { [name]: 5 })).toBe(
          `@DistributedLock() on Shop.buy: unknown option "${name}". Write ${option}. [LOCK_CONFIG_UNKNOWN_OPTION]`,
        );
    expect(await refusal('@DistributedLock', { colour: 5 })).toMatch(/unknown option "colour"\. The options are .*keyTimeout.*\. \[/);
    expect(await refusal('locks.acquire', { skip: true })).toMatch(/unknown option "skip"\. The options are keyTimeout/);
  });

  it('says where to write the options of decorators in forRoot, and that the module is global', async () => {
    const of = (options: object) => refusalOf(() => DistributedLockModule.forRoot({ store, ...options }));
    expect(await of({ keyTimeout: 5000 })).toContain('forRoot: "keyTimeout" is a default of locks: write { defaults: { keyTimeout } }.');
    expect(await of({ isGlobal: true })).toContain('leave "isGlobal" out: the module is always global.');
  });

  it.each<[string, unknown, string]>([
    ['host', { host: 'localhost', port: 6379 }, '"host" is an option of ioredis: write redisStore({ options: { host } })'],
    ['a client passed bare', { evalsha: () => undefined }, 'a client is passed as redisStore({ client })'],
    ['a URL passed bare', 'redis://localhost', 'the options must be an object: redisStore({ url })'],
    ['a url from a variable that is not set', { url: undefined }, '"url" is undefined: is the variable set that it comes from?'],
    ['an empty url', { url: '' }, '"url" must be a URL such as redis://localhost:6379/0, with %25 for a % in the password, not \'\''],
    ['a url that is no text', { url: 5 }, '"url"'],
    ['a client that is none', { client: {} }, '"client"'],
    ['a URL of another server', { url: 'postgres://localhost' }, '"url" must be a URL such as redis://localhost:6379/0'],
    ['a bare % in the password', { url: 'redis://me:100%@localhost' }, 'with %25 for a % in the password'],
    ['a database that is no number', { url: 'redis://localhost/abc' }, '"url" must be a URL such as redis://localhost:6379/0'],
    ['a misspelled option', { uri: 'redis://localhost' }, 'unknown option "uri". The options are url,'],
  ])('says what to write in redisStore instead of %s', async (_what, options, message) => {
    expect(await refusalOf(() => redisStore(options as never))).toContain(message);
  });
});

const SECRET = 'hunter2';
/** All stores that take options, with what each needs. */
const STORES: Record<string, (options: object) => unknown> = {
  redisStore: (options) => redisStore(options as never),
  'redisStore for Sentinel': (options) => redisStore({ sentinels: [{}], name: 'main', ...options }),
  'redisStore for a Cluster': (options) => redisStore({ cluster: [{}], ...options }),
  postgresStore: (options) => postgresStore(options as never),
  'postgresStore beside a query': (options) => postgresStore({ query: () => [], ...options } as never),
  mysqlStore: (options) => mysqlStore(options as never),
  'mysqlStore with a url': (options) => mysqlStore({ url: 'mysql://localhost/shop', ...options }),
  etcdStore: (options) => etcdStore({ endpoints: ['http://localhost'], ...options }),
  'the auth of etcdStore': (auth) => etcdStore({ endpoints: ['http://localhost'], auth: { username: 'a', password: 'b', ...auth } }),
  zookeeperStore: (options) => zookeeperStore(options),
  'zookeeperStore with auth': (options) => zookeeperStore({ connectionString: 'localhost', ...options }),
  fileStore: (options) => fileStore({ directory: '/nowhere', ...options }),
  quorumStore: (options) => quorumStore([memoryStore(), memoryStore(), memoryStore()], options),
};
const hidden: [string, unknown][] = [
  ['text', SECRET],
  ['text with other characters', `x; ${SECRET}`],
  ['a function', Object.assign(() => SECRET, { SECRET })],
  ['an object', { password: SECRET, connectionString: `postgres://u:${SECRET}@h:x/db`, toString: () => SECRET }],
  ['an array', [SECRET, { password: SECRET }]],
  ['a client of pg', new pg.Client({ password: SECRET, connectionString: `postgres://u:${SECRET}@h/db` })],
  ['a URL object', new URL(`redis://u:${SECRET}@h`)],
  ['a symbol', Symbol(SECRET)],
  ...[
    ...['redis', 'postgres', 'mysql', 'http', 'jdbc:postgresql', 'prisma+postgres'].flatMap((scheme) => [
      `${scheme}://u:${SECRET}@h/a/b`,
      `${scheme}://u:${SECRET}%@h`,
      `${scheme}://u:${SECRET}%ff@h`,
      `${scheme}://u:${SECRET}/1@h:x`,
      `${scheme}://h?ssl-mode=REQUIRED&password=${SECRET}`,
      `${scheme}://h/${SECRET}`,
    ]),
    `h.redis.cache.windows.net:6380,password=${SECRET},ssl=True`,
    `redis://h:6380,password=${SECRET},ssl=True`,
    `${SECRET}@localhost:2181`,
    `${SECRET}://localhost`,
  ].map((url): [string, unknown] => [`the text ${url.replace(SECRET, '…')}`, url]),
];

it.each(Object.entries(STORES))('%s shows no value of an option, which may have a password', (_store, make) => {
  const thrown = (options: object): unknown => {
    try {
      make(options);
    } catch (error) {
      return error;
    }
    return undefined;
  };
  // Those that there are, and one more.
  const [, known] = /The options are (.*)\. \[/.exec(String(thrown({ nowhere: 1 })))!;
  const refused = [...known!.split(', '), 'nowhere'].map((name) => {
    const errors = hidden.map(([, value]) => thrown({ [name]: value })).filter(Boolean);
    for (const error of errors) {
      const { message, stack } = error as Error;
      for (const text of [message, stack, inspect(error, { depth: 9, showHidden: true })]) expect(text).not.toContain(SECRET);
      expect(error).toBeInstanceOf(LockConfigError);
    }
    return errors.length;
  });
  expect(Math.max(...refused)).toBeGreaterThan(0);
});

it.each<[name: string, make: (url: string) => unknown, good: string, bad: string]>([
  [
    'redisStore',
    (url) => redisStore({ url }),
    'redis://h REDIS://h rediss://u:p%25@h:6380/1?ssl_cert_reqs=none redis://h/?tls=true&family=6 /run/redis.sock?db=2 redis:///1',
    'h:6379 postgres://h redis://h?ssl=true redis://h/a //h h:6380,password=p,ssl=True redis:h',
  ],
  [
    'postgresStore',
    (url) => postgresStore({ url }),
    'postgres://h postgresql://u:p%@h:5432/shop?ssl=true postgres://u:p@/shop?host=/run/postgresql postgres:///shop' +
      ' postgres://h/shop?sslmode=require&sslaccept=strict',
    'h:22810/shop jdbc:postgresql://h/shop prisma+postgres://h mysql://h postgres://h?ssl-mode=require postgres://h?sslMode=require',
  ],
  [
    'mysqlStore',
    (url) => mysqlStore({ url }),
    'mysql://u:p@h/shop mariadb://h/shop mysql://h/shop?ssl={} mysql://h/shop?ssl={"rejectUnauthorized":true} mysql://h/shop?ssl=Amazon%20RDS',
    'h:22810/shop jdbc:mysql://h/shop postgres://h/shop mysql://h/shop?ssl-mode=REQUIRED mysql://h/shop?sslaccept=strict' +
      ' mysql://h/shop?ssl=true mysql://h/shop?useSSL=true mysql://h/shop?tls=true',
  ],
  [
    'etcdStore',
    (url) => etcdStore({ endpoints: ['https://h', url] }),
    'http://h:2379 https://h/',
    'h:2379 redis://h https://h/a https://u:p@h https://h?ssl=true',
  ],
])('%s takes URLs that it understands whole, TLS included', (_store, make, good, bad) => {
  for (const url of good.split(' ')) make(url);
  for (const url of bad.split(' ')) expect(() => make(url)).toThrow(LockConfigError);
});

it('a decorator that lacks what it needs shows one with them', async () => {
  for (const options of [[], [undefined], [{}]]) {
    expect(await refusalOf(() => define((Semaphore as Untyped)(...options)))).toMatch(
      /@Semaphore\(\) on Shop\.buy: "permits" must be a whole number.*, not undefined: write @Semaphore\(\{ permits: 5 \}\)\./,
    );
    expect(await refusalOf(() => define((CronLock as Untyped)(...options)))).toMatch(
      /@CronLock\(\) on Shop\.buy: "minHold" must be .* at least 1, not undefined: write @CronLock\(\{ minHold: 60_000 \}\)\./,
    );
  }
  for (const name of [undefined, '', null, 5, {}, () => 'jobs'])
    expect(await refusalOf(() => define((LeaderOnly as Untyped)(name)))).toMatch(
      /@LeaderOnly\(\) on Shop\.buy: the name of the election must/,
    );
  expect(await refusalOf(() => define((LeaderOnly as Untyped)(undefined)))).toMatch(/not empty: write @LeaderOnly\('jobs'\)\./);
  expect(await refusal('runStandby', { name: undefined })).toContain('name');
});

it.each(LOCKS)('%s has a key, and not both a key and paramLock', async (taker) => {
  expect(await refusal(taker, { prefix: '', value: '' })).toContain(`${subject(taker)}the key is empty`);
  for (const paramLock of [true, ['0']])
    expect(await refusal(taker, { key: () => 'a', paramLock })).toMatch(/Shop\.buy: .*"key".*"paramLock"/);
});
