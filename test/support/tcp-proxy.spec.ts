import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';

// A command that fails is not sent again, so that each one shows what became of it.
const once: RedisOptions = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: () => 10,
  disconnectTimeout: 100,
};

describe('the proxy before a redis-server', () => {
  let server: RedisServer;
  let direct: Redis;
  let proxy: TcpProxy;
  let client: Redis;
  const clients: Redis[] = [];

  beforeAll(async () => {
    server = await startRedis();
    direct = server.client();
  });
  afterAll(() => server.stop());

  beforeEach(async () => {
    await direct.flushall();
    proxy = await startProxy(server.connection);
    client = connect();
    await client.ping();
  });
  afterEach(async () => {
    for (const one of clients.splice(0)) one.disconnect();
    await proxy.close();
    await eventually(() => proxy.connections === 0);
  });

  function connect(options: RedisOptions = {}): Redis {
    const one = new Redis({ ...proxy.connection, ...once, ...options });
    one.on('error', () => undefined);
    clients.push(one);
    return one;
  }

  /** Its outcome, once it has one. */
  function watch<T>(call: Promise<T>): { outcome?: T | Error } {
    const seen: { outcome?: T | Error } = {};
    call.then(
      (value) => (seen.outcome = value),
      (error: Error) => (seen.outcome = error),
    );
    return seen;
  }

  const isSet = (key: string) => eventually(async () => (await direct.exists(key)) === 1);
  const recovers = () => eventually(async () => (await client.ping()) === 'PONG');

  it('drops replies: the command is applied, and the client never hears', async () => {
    proxy.dropReplies();
    const call = watch(client.set('key', 'value'));
    await isSet('key');
    await eventually(() => proxy.lost.replies === 1);
    expect(call.outcome).toBeUndefined();
    await proxy.heal();
    await eventually(() => call.outcome instanceof Error);
    await recovers();
  });

  it('loses the one reply that is asked for, and resets the connection', async () => {
    const loss = proxy.dropReplyTo('of-interest');
    const calls = ['before', 'of-interest', 'after'].map((key) => watch(client.set(key, 'value')));
    await eventually(() => calls.every((call) => call.outcome !== undefined));
    expect(calls.map((call) => call.outcome)).toEqual(['OK', expect.any(Error), expect.any(Error)]);
    expect(loss.lost).toBe(1);
    expect(await direct.exists('before', 'of-interest')).toBe(2);
    await recovers();
    expect(await client.set('of-interest', 'again')).toBe('OK');
  });

  it('loses the reply to a script, and leaves the connection open and silent', async () => {
    const loss = proxy.dropReplyTo((request) => request.includes('EVAL') || request.includes('eval'), { then: 'silence' });
    const call = watch(client.eval('return redis.call("set", KEYS[1], 1)', 1, 'key'));
    await eventually(() => loss.lost === 1);
    const later = watch(client.set('later', 'value'));
    await isSet('later');
    expect([call.outcome, later.outcome, client.status]).toEqual([undefined, undefined, 'ready']);
    expect(await connect().get('key')).toBe('1');
    await proxy.heal();
    await eventually(() => call.outcome instanceof Error && later.outcome instanceof Error);
    await recovers();
  });

  it('is a black hole: connections stay open, and neither side hears of the end of the other', async () => {
    const id = String(await client.client('ID'));
    proxy.blackhole();
    const call = watch(client.set('key', 'value'));
    await eventually(() => proxy.lost.requests === 1);
    const late = connect({ commandTimeout: 100 });
    await expect(late.ping()).rejects.toThrow();
    await eventually(() => late.status === 'connect'); // accepted, and its greeting goes unanswered
    expect([call.outcome, client.status]).toEqual([undefined, 'ready']);
    client.disconnect();
    await eventually(() => call.outcome instanceof Error && proxy.connections < 2);
    expect(await direct.client('LIST')).toContain(`id=${id} `);
    await proxy.heal();
    await eventually(async () => !String(await direct.client('LIST')).includes(`id=${id} `));
  });

  it('delays, and keeps the order', async () => {
    proxy.delay(30, 30, 'replies');
    const start = performance.now();
    const replies = await Promise.all([client.incr('count'), client.incr('count'), client.incr('count')]);
    expect(performance.now() - start).toBeGreaterThanOrEqual(29);
    expect(replies).toEqual([1, 2, 3]);
    await proxy.heal();
    expect(client.status).toBe('ready');
    expect(await client.incr('count')).toBe(4);
  });

  it('resets a client, and gives the server later what it had sent', async () => {
    const cut = proxy.cutLate({ hold: 50, late: 300 });
    const call = watch(client.set('late', '1'));
    await cut;
    await eventually(() => expect(call.outcome).toBeInstanceOf(Error));
    expect(await direct.exists('late')).toBe(0);
    await recovers();
    await isSet('late');
  });

  it('leads new connections elsewhere, and leaves the open ones where they are', async () => {
    const other = await startRedis();
    await other.client().set('where', 'other');
    await direct.set('where', 'here');
    proxy.moveTo(other.connection);
    expect(await client.get('where')).toBe('here');
    expect(await connect().get('where')).toBe('other');
    await other.stop();
  });
});
