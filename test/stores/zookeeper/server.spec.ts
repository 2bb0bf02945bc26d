// ZooKeeper as it is set up wrongly, or by itself in trouble. One server, which is changed from test to test.
import { LockConfigError } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import zookeeper from 'node-zookeeper-client';
import { createServer, connect as connectTo, type AddressInfo, type Socket } from 'node:net';
import { rejection, timed } from '../../../lib/testing/store/rejection.js';
import { examined } from '../../doctor/examined.js';
import { eventually } from '../../support/eventually.js';
import { startZookeeper, type ZookeeperServer } from '../../support/zookeeper-server.js';
import { asked, connected, open, type Inside } from './setting.js';

let server: ZookeeperServer;
let connectionString: string;
beforeAll(async () => {
  server = await startZookeeper();
  ({ connectionString } = server);
});
afterAll(() => server.stop());

const ROWS = '/nestjs-distributed-lock/r';

describe('the options', () => {
  it.each([
    [{}, 'give either "connectionString" or "client"'],
    [{ connectionString: 'zookeeper://zk-1:2181' }, 'hosts and a node'],
    [{ connectionString: 'shop:secret@zk-1:2181' }, 'It has no scheme, no user'],
    [{ connectionString: 'zk-1:2181/a/../b' }, 'hosts and a node'],
    [{ connectionString: 'zk-1', auth: [{ scheme: 'digest' }] }, '"auth" must be'],
    [{ connectionString: 'zk-1', acl: ['world:anyone:r'] }, '"acl" must be'],
    [{ client: {} }, '"client" must be one of node-zookeeper-client'],
  ])('%j: %s', (options, message) => {
    expect(() => zookeeperStore(options as never)).toThrow(LockConfigError);
    expect(() => zookeeperStore(options as never)).toThrow(message);
    expect(() => zookeeperStore(options as never)).not.toThrow('secret');
  });
});

it('the doctor says of one server that one disk has all locks, and nothing else', async () => {
  const report = await examined(zookeeperStore({ connectionString }));
  expect(report.notOk).toEqual(['replication warn']);
  expect(report.of('version').seen).toMatch(/^ZooKeeper 3\.\d+\.\d+$/);
  expect(report.of('role').seen).toContain('no clock of a server takes part');
});

it('the doctor does not know the version where four-letter words are forbidden, and locks work', async () => {
  const silent = await startZookeeper({ config: ['4lw.commands.whitelist=ruok'], word: 'ruok' });
  const report = await examined(zookeeperStore({ connectionString: silent.connectionString }));
  expect(report.of('version')).toMatchObject({ state: 'unknown', seen: expect.stringContaining('4lw.commands.whitelist=srvr') });
  expect(report.of('probe').state).toBe('ok');
  await silent.stop();
});

it('the doctor refuses servers that do not know each other', async () => {
  const other = await startZookeeper();
  const report = await examined(zookeeperStore({ connectionString: `${connectionString},${other.connectionString}` }));
  expect(report.of('role')).toMatchObject({ state: 'bad', seen: 'servers that do not know each other' });
  expect(report.verdict).toMatchObject({ efficiency: 'no' });
  await other.stop();
});

it.each(['/', '.', '..', 'a/b', 'ä', '%', '%2F', ' ', '\u0000', '😀', '/a/./..'])('a key %j is a key of its own, and is listed', async (key) => {
  const locks = open(`${connectionString}/keys`);
  const lease = await locks.acquire(key);
  expect(await locks.tryAcquire(`${key}x`).then((other) => other?.release())).toBe(true);
  expect(await open(`${connectionString}/keys`).tryAcquire(key)).toBeNull();
  const listed: string[] = [];
  for await (const each of locks.list()) listed.push(each.key);
  expect(listed).toContain(key);
  expect(await lease.release()).toBe(true);
});

describe('a host', () => {
  it('that does not listen is passed over', async () => {
    for (let tries = 0; tries < 6; tries++) await (await open(`127.0.0.1:1,${connectionString}`).acquire('order:42')).release();
  });

  it('that is the only one and does not listen is an outage: nothing was sent', async () => {
    const store = zookeeperStore({ connectionString: '127.0.0.1:1', requestTimeout: 300 });
    const error = await rejection(store.mutex.check({ key: 'order:42', owner: 'me' }));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, isUnsent: true });
    await store.close();
  });

  it('that is silent is left for another one', async () => {
    const accepted = new Set<Socket>();
    const silent = createServer((socket) => void accepted.add(socket)).listen(0, '127.0.0.1');
    const port = (silent.address() as AddressInfo).port;
    for (let tries = 0; tries < 6; tries++) await (await open(`127.0.0.1:${port},${connectionString}`).acquire('order:42')).release();
    for (const socket of accepted) socket.destroy();
    silent.close();
  });
});

it('a lease outlives that the server is killed and started again, and a waiter gets the key after it', async () => {
  const [holder, waiter] = [open(connectionString), open(connectionString)];
  const lease = await holder.acquire('killed', { keyTimeout: 30_000 });
  const waiting = waiter.acquire('killed', { waitTimeout: 60_000 });
  await server.kill();
  expect(await rejection(holder.tryAcquire('other', { timeout: 500 } as never))).toMatchObject({ name: 'StoreError', transient: true });
  await server.restart();
  await eventually(() => lease.renew());
  expect(lease.signal.aborted).toBe(false);
  await eventually(() => lease.release());
  await (await waiting).release();
});

it('a server that hangs is noticed by the time limit of a request, and used again when it goes on', async () => {
  const locks = open({ connectionString, requestTimeout: 300 });
  const lease = await locks.acquire('hung', { keyTimeout: 60_000 });
  server.pause();
  const { result, elapsed } = await timed(() => rejection(lease.renew()));
  const again = await rejection(lease.renew());
  server.resume();
  expect(result).toMatchObject({ transient: true, isUnsent: false });
  expect(elapsed).toBeGreaterThanOrEqual(299);
  // The connection was given up: nothing was sent.
  expect(again).toMatchObject({ transient: true, isUnsent: true });
  await eventually(() => lease.renew());
  expect(await lease.release()).toBe(true);
});

it('a lease outlives its session, and waiters are still woken', async () => {
  const client = await connected(connectionString);
  const [holder, waiter] = [open({ client }), open(connectionString)];
  const handOver = async (key: string, change: () => unknown): Promise<void> => {
    const lease = await waiter.acquire(key, { keyTimeout: 60_000 });
    const waiting = holder.acquire(key, { waitTimeout: 60_000, retryInterval: 30_000 });
    await eventually(async () => (await waiter.inspect(key)).waiters.length === 1);
    await change();
    await eventually(() => lease.release());
    await (await waiting).release();
  };
  await handOver('session', () => undefined);
  await handOver('session', async () => {
    const { connectionManager } = client as unknown as Inside;
    // Another client with the same session closes it, as an operator would.
    const twin = zookeeper.createClient(connectionString, {
      sessionId: connectionManager.sessionId,
      sessionPassword: client.getSessionPassword(),
    } as never);
    await new Promise<void>((resolve) => {
      twin.once('connected', resolve);
      twin.connect();
    });
    connectionManager.socket.destroy();
    await new Promise((resolve) => client.once('connected', resolve));
    twin.close();
  });
});

it('each release wakes one of several waiters, without a poll', async () => {
  const holder = open(connectionString);
  const waiters = Array.from({ length: 5 }, () => open(connectionString));
  const lease = await holder.acquire('woken', { keyTimeout: 60_000 });
  let entered = 0;
  const waiting = waiters.map(async (locks) => {
    const next = await locks.acquire('woken', { waitTimeout: 60_000, retryInterval: 30_000 });
    entered++;
    await next.release();
  });
  await eventually(async () => (await holder.inspect('woken')).waiters.length === 5);
  expect(entered).toBe(0);
  const { elapsed } = await timed(async () => {
    await lease.release();
    await Promise.all(waiting);
  });
  expect(entered).toBe(5);
  expect(elapsed).toBeLessThan(15_000);
});

it('a lost reply changes nothing: the request is repeated, and there is one grant', async () => {
  const proxy = await losing(server.port);
  const locks = open({ connectionString: proxy.connectionString, requestTimeout: 2000 });
  await (await locks.acquire('lost:1')).release();
  // Of a row that is made, and of one that is changed.
  for (const key of ['lost:2', 'lost:1']) {
    proxy.loses = `${ROWS}/${key.replace(':', '%3A')}`;
    const lease = await locks.acquire(key);
    expect(proxy.loses).toBeUndefined();
    expect(await open(connectionString).tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
    await (await open(connectionString).acquire(key)).release();
  }
  proxy.close();
});

describe('rights', () => {
  const auth = [{ scheme: 'digest', auth: 'shop:pässword:@' }];
  const acl = zookeeper.ACL.CREATOR_ALL_ACL;
  const safe = (): string => `${connectionString}/safe`;
  beforeAll(async () => {
    const locks = open({ connectionString: safe(), auth, acl });
    await (await locks.acquire('order:42')).release();
    await locks.close();
  });

  it('of the user are enough for all checks', async () => {
    const report = await examined(zookeeperStore({ connectionString: safe(), auth, acl }));
    expect(report.of('probe').state).toBe('ok');
    expect(report.notOk).not.toContain('wake-ups warn');
  });

  it.each([
    ['no user', {}, 'NO_AUTH'],
    ['another password', { auth: [{ scheme: 'digest', auth: 'shop:wrong' }] }, 'Give "auth"'],
    ['a scheme that the server does not know', { auth: [{ scheme: 'sesame', auth: 'open' }] }, 'Check "auth"'],
    ['"acl" of a user without one', { connectionString: '', acl }, 'Check "acl"'],
  ])('%s: refused with what to do, and without the password', async (_what, options, message) => {
    const place = 'connectionString' in options ? `${connectionString}/other` : safe();
    const error = await rejection(open({ ...options, connectionString: place }).acquire('order:42', { waitTimeout: 3000 }));
    expect(error).toMatchObject({ name: 'StoreError', transient: false, isRefusal: true, message: expect.stringContaining(message) });
    expect(String(error)).not.toMatch('wrong');
  });
});

it('a quota that is used up is a refusal, which the client alone does not survive', async () => {
  const strict = await startZookeeper({ config: ['enforceQuota=true'] });
  const client = await connected(strict.connectionString);
  const locks = open(`${strict.connectionString}/full`);
  await (await locks.acquire('order:1')).release();
  const limits = '/zookeeper/quota/full/zookeeper_limits';
  for (const path of ['/zookeeper/quota/full']) await asked<string>((done) => client.create(path, done));
  await asked<string>((done) => client.create(limits, Buffer.from('count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1'), done));
  await asked<string>((done) => client.create('/zookeeper/quota/full/zookeeper_stats', Buffer.from('count=1,bytes=0'), done));
  await strict.restart();
  const error = await eventually(async () => {
    const refused = await rejection(locks.acquire('order:2', { waitTimeout: 1000 }));
    return (refused as { isRefusal?: boolean }).isRefusal ? refused : undefined;
  });
  expect(error).toMatchObject({ message: expect.stringContaining('setquota') });
  await strict.stop();
});

it.each([['garbage'], ['life {"record":{"kind":"mutex"},"fence":1}'], ['']])('a row %j is an error that names the key', async (text) => {
  const client = await connected(connectionString);
  const locks = open(connectionString);
  await (await locks.acquire('warm')).release();
  const key = `odd:${text.length}`;
  await asked<string>((done) => client.create(`${ROWS}/${encodeURIComponent(key)}`, Buffer.from(text), done));
  const error = await rejection(locks.acquire(key, { waitTimeout: 1000 }));
  expect(error).toMatchObject({ name: 'StoreError', transient: false, message: expect.stringContaining(`The row of "${key}" is not valid`) });
});

describe('a client of the user', () => {
  it('is used with its path, and left open', async () => {
    const client = await connected(connectionString);
    await asked<string>((done) => client.create('/lent', done)).catch(() => undefined);
    const lent = await connected(`${connectionString}/lent`);
    const locks = open({ client: lent });
    const lease = await locks.acquire('order:42');
    expect(await asked<string[]>((done) => client.getChildren(`/lent${ROWS}`, done))).toEqual(['order%3A42']);
    await lease.release();
    await locks.close();
    expect(lent.getState()).toBe(zookeeper.State.SYNC_CONNECTED);
  });

  it('that is not connected is asked nothing: what it would send later was given up', async () => {
    const client = zookeeper.createClient(connectionString);
    const store = zookeeperStore({ client, requestTimeout: 200 });
    const request = { key: 'late', owner: 'me', ttl: 60_000, tokens: 1, queue: false };
    expect(await rejection(store.mutex.acquire(request))).toMatchObject({
      transient: true,
      isUnsent: true,
      message: expect.stringContaining('The client is yours: connect it'),
    });
    client.connect();
    expect(await eventually(() => open(connectionString).tryAcquire('late'))).not.toBeNull();
    await store.close();
    client.close();
  });
});

/** A server before ZooKeeper. It loses the reply to the next transaction with this text, and breaks the connection. */
async function losing(target: number): Promise<{ connectionString: string; loses: string | undefined; close(): void }> {
  const sockets = new Set<Socket>();
  const MULTI = 14;
  const proxy = createServer((socket) => {
    const upstream = connectTo(target, '127.0.0.1');
    let isLost = false;
    for (const each of [socket, upstream]) sockets.add(each.on('error', () => undefined));
    socket.on('data', (data) => {
      if (state.loses !== undefined && data.includes(Buffer.from([0, 0, 0, MULTI])) && data.includes(state.loses)) {
        state.loses = undefined;
        isLost = true;
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => (isLost ? socket.destroy() : socket.write(data)));
    socket.on('close', () => upstream.destroy());
    upstream.on('close', () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const state = {
    connectionString: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    loses: undefined as string | undefined,
    close() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
  return state;
}
