import { LockLostError, StoreError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { HEAD_START, SLACK, endOf, outcomeOf, useRedis } from './setting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 500;
const patient = { keyTimeout: 60_000, waitTimeout: 15_000 };
/** After an outage a store is usable within so many milliseconds of the server's return. */
const BACK = 1_000;

const setting = useRedis();
let proxy: TcpProxy;
let locks: Locks;

beforeEach(async () => {
  proxy = await setting.proxy();
  locks = setting.own(proxy.connection, { requestTimeout: REQUEST_TIMEOUT });
  setting.finally(() => proxy.heal());
});

/** Neither the open connection nor a new one. */
function down(): void {
  proxy.refuse();
  proxy.cut();
}

const connect = () => locks.using('warm-up', () => undefined, patient);
const lossOf = (lease: Lease) =>
  new Promise<unknown>((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.signal.reason)));

const OUTAGES: [string, { begin: () => unknown; end: () => unknown }][] = [
  ['refuses connections', { begin: down, end: () => proxy.heal() }],
  ['is killed and started again', { begin: () => setting.server.kill(), end: () => setting.server.restart() }],
  ['is paused', { begin: () => setting.server.pause(), end: () => setting.server.resume() }],
  ['cannot be reached, nor the end of its connections be seen', { begin: () => proxy.blackhole(), end: () => proxy.heal() }],
];

describe.each(OUTAGES)('while the server %s', (_, outage) => {
  it('an acquire fails when its patience and one requestTimeout have gone, not before, as an outage (G9)', async () => {
    await connect();
    await outage.begin();
    const body = jest.fn();
    const { error, took } = await outcomeOf(locks.using(KEY, body, { waitTimeout: 700, retryInterval: 50 }));
    await outage.end();
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
    expect(took).toBeGreaterThanOrEqual(700 - HEAD_START);
    expect(took).toBeLessThan(700 + REQUEST_TIMEOUT + SLACK);
    expect(body).not.toHaveBeenCalled();
  });

  it('an acquire that waits for ever lives through it, and proceeds within a second of its return (G9)', async () => {
    await connect();
    await outage.begin();
    const call = locks.acquire(KEY, { keyTimeout: 60_000, retryCount: 0, retryInterval: 100 });
    call.catch(() => undefined);
    // Long enough for the pauses between two attempts to connect to have grown.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    await outage.end();
    const { value: lease, took } = await outcomeOf(call);
    expect(took).toBeLessThan(BACK + SLACK);
    expect(await setting.redis.get(KEY)).toBe(lease!.owner);
    expect(await lease!.release()).toBe(true);
  });

  it('a release lets the result through within one requestTimeout, and frees the key when the server is back (G7, G9, G10)', async () => {
    const { value, took } = await outcomeOf(
      locks.using(
        KEY,
        async () => {
          await outage.begin();
          return 'result';
        },
        patient,
      ),
    );
    await outage.end();
    expect(value).toBe('result');
    expect(took).toBeLessThan(REQUEST_TIMEOUT + SLACK);
    await eventually(async () => (await setting.redis.exists(KEY)) === 0, { within: 3_000 + SLACK });
  });
});

describe('an outage during a hold', () => {
  it.each(OUTAGES.filter(([name]) => !name.includes('killed')))(
    'when the server %s, shorter than the lease, is lived through (G4)',
    async (_, outage) => {
      const lost = jest.fn();
      const unknown = jest.fn();
      locks.on('lost', lost);
      locks.on('unknown', unknown);
      const lease = await locks.acquire(KEY, { ...patient, keyTimeout: 4_000 });
      await outage.begin();
      await eventually(() => unknown.mock.calls.length > 0, { within: 4_000 });
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      await outage.end();
      const end = endOf(lease);
      await eventually(() => endOf(lease) > end + 100, { within: lease.remaining() });
      expect(await setting.redis.get(KEY)).toBe(lease.owner);
      expect(await lease.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    },
  );

  it('longer than the lease loses it at its real end, neither sooner nor later, and the result comes with the error (G3, G4, G10)', async () => {
    const work = async (lease: Lease): Promise<string> => {
      const loss = lossOf(lease);
      down();
      const left = lease.remaining();
      const { value: reason, took } = await outcomeOf(loss);
      expect(reason).toBeInstanceOf(LockLostError);
      expect(took).toBeGreaterThanOrEqual(left - HEAD_START);
      expect(took).toBeLessThan(left + SLACK);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      return 'result';
    };
    const { error, took } = await outcomeOf(locks.using(KEY, work, { ...patient, keyTimeout: 1_500 }));
    expect(error).toBeInstanceOf(LockLostError);
    expect((error as LockLostError).result).toBe('result');
    expect(took).toBeLessThan(1_500 + REQUEST_TIMEOUT + SLACK);
  });

  it('in which the server forgets everything is a loss, by renewal and by release, and the next token is larger all the same (G2, G3)', async () => {
    const [renewed, released] = await Promise.all([
      locks.acquire('renewed', { ...patient, keyTimeout: 3_000 }),
      locks.acquire('released', { ...patient, keyTimeout: 60_000 }),
    ]);
    await setting.server.restart();
    await eventually(() => renewed.signal.aborted, { within: 3_000 + SLACK });
    expect(() => renewed.assertHeld()).toThrow(LockLostError);
    expect(await released.release()).toBe(false);
    expect(await renewed.release()).toBe(false);
    for (const before of [renewed, released]) {
      const next = await locks.acquire(before.key, patient);
      expect(next.fencingToken).toBeGreaterThan(before.fencingToken!);
      await next.release();
    }
  });
});

describe('a connection', () => {
  it('that has gone silent for good, while the server can be reached, is replaced within a requestTimeout (G9)', async () => {
    await connect();
    const loss = proxy.dropReplyTo('EVALSHA', { then: 'silence' });
    const lowerCase = proxy.dropReplyTo('evalsha', { then: 'silence' });
    const { value, took } = await outcomeOf(locks.acquire(KEY, patient));
    expect(loss.lost + lowerCase.lost).toBe(1);
    expect(took).toBeLessThan(REQUEST_TIMEOUT + BACK + SLACK);
    expect(await value!.release()).toBe(true);
  });
});

it('a client of our own that has ended by itself connects again, as ioredis does not when Sentinel tells of a failover while it connects', async () => {
  locks = setting.own({ ...proxy.connection, retryStrategy: () => null } as never, { requestTimeout: REQUEST_TIMEOUT });
  await connect();
  down();
  const call = locks.acquire(KEY, { keyTimeout: 60_000, retryCount: 0, retryInterval: 100 });
  call.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 2 * REQUEST_TIMEOUT));
  await proxy.heal();
  const { value, took } = await outcomeOf(call);
  expect(took).toBeLessThan(BACK + SLACK);
  await value!.release();
});
