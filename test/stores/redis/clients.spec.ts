import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { makeCertificate } from '../../support/certificate.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { EndsArgs, EndsMessage, Way } from './ends.child.js';
import { usesEveryVerb } from './every-verb.js';
import { useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';

const certificate = makeCertificate();
const setting = useRedis({ port: 'free', args: certificate.args });
let sentinel: RedisServer;
let tlsPort: number;

beforeAll(async () => {
  sentinel = await startSentinel({ name: 'main', master: setting.server });
  tlsPort = await freePort();
  await setting.redis.config('SET', 'tls-port', tlsPort);
});
afterAll(async () => {
  await sentinel.stop();
  certificate.remove();
});

const connections = async () => new Set(((await setting.redis.client('LIST')) as string).match(/^id=\d+/gm));
describe('a store', () => {
  const sentinels = () => [{ host: '127.0.0.1', port: sentinel.port! }];
  const tls = () => ({ host: '127.0.0.1', port: tlsPort, tls: { ca: certificate.ca } });
  // A Cluster has a file of its own: cluster.spec.ts. So have clients that an app passes: lent-clients.spec.ts.
  const FORMS: [string, () => RedisStoreOptions][] = [
    ['a client over TLS', () => ({ client: setting.client(tls()) })],
    ['a url with a db', () => ({ url: `redis://127.0.0.1:${setting.server.port}/5` })],
    ['options of TLS', () => ({ options: tls() })],
    ['options that would connect again after each error', () => ({ options: { ...setting.server.connection, reconnectOnError: () => 2 } })],
    ['sentinels', () => ({ sentinels: sentinels(), name: 'main' })],
    ['sentinels and options', () => ({ sentinels: sentinels(), name: 'main', options: { db: 2 } })],
  ];

  it.each(FORMS)('made with %s grants, excludes, queues, renews, wakes and releases', async (_, form) => {
    await setting.redis.script('FLUSH');
    await usesEveryVerb(setting.locks(form()), setting.locks(form()), KEY);
  });

  it('made with sentinels is not held up by one that accepts connections and answers nothing', async () => {
    const hung = await startSentinel({ name: 'main', master: setting.server });
    setting.finally(() => hung.stop());
    await hung.pause();
    const both = [{ host: '127.0.0.1', port: hung.port! }, ...sentinels()];
    const locks = setting.overIoredis({ sentinels: both, name: 'main', requestTimeout: 2_000 });
    expect(await (await locks.acquire(KEY, woken)).release()).toBe(true);
  });

  it('made with sentinels gives up an inbox whose sentinel hangs, and polls', async () => {
    const hung = await startSentinel({ name: 'main', master: setting.server });
    setting.finally(() => hung.stop());
    const locks = setting.overIoredis({ sentinels: [{ host: '127.0.0.1', port: hung.port! }], name: 'main', requestTimeout: 2_000 });
    await locks.using(KEY, () => undefined, woken);
    await hung.pause();
    const { wakeUps } = locks.store.mutex;
    await wakeUps!.open(() => undefined);
    expect(wakeUps!.state).toBe('interrupted');
  });

  it('connects with the first use, once, keeps its connection while nothing is asked, and is gone after close (G7)', async () => {
    const before = await connections();
    const locks = setting.overIoredis({ options: setting.server.connection, requestTimeout: 2_000 });
    locks.mutex(KEY);
    await setting.client().ping(); // what connected before it is listed by now
    expect((await connections()).size).toBe(before.size + 1);
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.using(`key:${i}`, () => undefined, woken)));
    const open = await connections();
    expect(open.size).toBe(before.size + 2);
    await staysTrue(async () => expect(await connections()).toEqual(open), 2_500); // more than a requestTimeout
    await locks.close();
    await eventually(async () => (await connections()).size === before.size + 1);
  });
});

it.each<[string, Way[], string[]]>([
  [
    'a store that it never uses, closes, closes with a lease that is held, and closes while it connects',
    ['never uses it', 'closes it', 'closes it with a lease that is held', 'closes it while it connects'],
    [],
  ],
  ['a store that it closes after it could not connect', ['closes it after it could not connect'], ['StoreError']],
  [
    'a client that it disconnects, telemetry that throws, and an app that does not start',
    [
      'disconnects its client, and never closes the store, with a lease that is held',
      'disconnects its clients, and never closes the stores, after leases of theirs were renewed',
      'has telemetry that throws',
      'is an app whose boot is refused',
    ],
    ['no telemetry', 'LockConfigError'],
  ],
  ['a server that goes away', ['loses the server and has no listener for errors'], ['connected', 'StoreError']],
])('a process with %s ends by itself', async (_, way, said) => {
  const nobody = { host: '127.0.0.1', port: await freePort() };
  const proxy = await setting.proxy();
  const isRefused = way[0]!.includes('could not connect');
  const child = await setting.fork<EndsMessage>('ends.child.ts', {
    connection: isRefused ? nobody : proxy.connection,
    way,
  } satisfies EndsArgs);
  for (const what of said) {
    expect(await child.waitFor('did')).toEqual({ type: 'did', what });
    if (what !== 'connected') continue;
    proxy.refuse();
    proxy.cut();
    child.send({ type: 'go on' });
  }
  await eventually(() => !child.running);
  expect(await child.exit).toEqual({ code: 0, signal: null });
  expect(child.output()).toBe('');
});
