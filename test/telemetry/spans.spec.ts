import { passTime } from '../support/virtual-time.js';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AlwaysOffSampler, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { LockTimeoutError, Locks, type Lease, type Telemetry } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { eventually } from '../support/eventually.js';
import { total } from './scrape.js';
import { startSdk } from './sdk.js';

const KEY = 'order-of-alice';
const label = 'Orders.pay';

let sdk: ReturnType<typeof startSdk>;
let all: Locks[];

function open(keys = false, store = memoryStore()): Locks {
  const locks = new Locks(store, { telemetry: openTelemetry({ keys }), logger: false, app: 'shop' });
  all.push(locks);
  return locks;
}
/** In place of the one that is there. */
async function begin(options: Parameters<typeof startSdk>[0]): Promise<void> {
  await sdk.stop();
  sdk = startSdk(options);
}
const named = (name: string) => sdk.spans().filter((span) => span.name === name);
const one = (name: string): ReadableSpan => {
  expect(named(name)).toHaveLength(1);
  return named(name)[0]!;
};
const parentOf = (span: ReadableSpan) => span.parentSpanContext?.spanId;
const idOf = (span: ReadableSpan) => span.spanContext().spanId;

beforeEach(() => {
  sdk = startSdk();
  all = [];
});
afterEach(async () => {
  await Promise.all(all.map((locks) => locks.close()));
  await sdk.stop();
});

it('a free lock costs one span, which the spans of its body are in', async () => {
  const locks = open();
  let lease!: Lease;
  await sdk.inSpan('request', () => locks.using(KEY, (held) => ((lease = held), sdk.inSpan('query', async () => undefined)), { label }));
  expect(sdk.spans().map(({ name }) => name)).toEqual(['query', `hold ${label}`, 'request']);
  const hold = one(`hold ${label}`);
  expect(parentOf(one('query'))).toBe(idOf(hold));
  expect(parentOf(hold)).toBe(idOf(one('request')));
  expect(hold.attributes).toEqual({
    'distributed_lock.name': label,
    'distributed_lock.kind': 'mutex',
    'distributed_lock.store': 'memory',
    'distributed_lock.owner': lease.owner,
    'distributed_lock.fencing_token': lease.fencingToken,
    'distributed_lock.attempts': 1,
    'distributed_lock.via': 'free',
    'distributed_lock.outcome': 'released',
  });
  expect(hold.status.code).toBe(SpanStatusCode.UNSET);
});

it('a nested call of the same key has no span of its own', async () => {
  const locks = open();
  await locks.using(KEY, () => sdk.inSpan('step', () => locks.using(KEY, () => sdk.inSpan('query', async () => undefined))), { label });
  expect(sdk.spans().map(({ name }) => name)).toEqual(['query', 'step', `hold ${label}`]);
  expect(parentOf(one('query'))).toBe(idOf(one('step')));
});

it('a wait is a span that links to the holder, and is in the trace of its own caller', async () => {
  const locks = open();
  const waits = new Promise((resolve) => locks.on('waiting', resolve));
  const holder = await sdk.inSpan('holder', () => locks.acquire(KEY, { label: 'Orders.hold' }));
  const waiter = sdk.inSpan('waiter', () =>
    locks.using(KEY, () => sdk.inSpan('query', async () => undefined), { label, waitTimeout: 5000 }),
  );
  await waits;
  await passTime(50);
  await sdk.inSpan('stranger', () => holder.release());
  await waiter;
  const [wait, hold] = [one(`wait ${label}`), one(`hold ${label}`)];
  expect(wait.links.map((link) => link.context)).toEqual([one('hold Orders.hold').spanContext()]);
  expect([wait, hold].map(parentOf)).toEqual([one('waiter'), one('waiter')].map(idOf));
  expect(parentOf(one('query'))).toBe(idOf(hold));
  expect(wait.attributes).toMatchObject({ 'distributed_lock.outcome': 'acquired', 'distributed_lock.name': label });
  expect(wait.startTime[0] * 1e9 + wait.startTime[1]).toBeLessThan(wait.endTime[0] * 1e9 + wait.endTime[1]);
});

it('a caller that gets the key from another links to the one before, and has a hold of its own', async () => {
  const locks = open();
  const first = await locks.acquire(KEY, { label: 'first' });
  const [second, third] = ['second', 'third'].map((each) => sdk.inSpan(each, () => locks.acquire(KEY, { label: each, waitTimeout: 5000 })));
  await first.release();
  await (await second!).release();
  await (await third!).release();
  expect(one('hold third').attributes).toMatchObject({ 'distributed_lock.via': 'handover' });
  expect(parentOf(one('hold third'))).toBe(idOf(one('third')));
  expect(one('wait third').links.map((link) => link.context.spanId)).toEqual([idOf(one('hold first'))]);
});

it('a wait that timed out is an error, without the key unless keys are wanted', async () => {
  for (const keys of [false, true]) {
    const locks = open(keys);
    const holder = await locks.acquire(KEY, { label: 'Orders.hold' });
    const name = `keys ${keys}`;
    await expect(locks.acquire(KEY, { label: name, waitTimeout: 30 })).rejects.toThrow(LockTimeoutError);
    const wait = one(`wait ${name}`);
    expect(wait.status.code).toBe(SpanStatusCode.ERROR);
    expect(wait.events.map((event) => event.name)).toEqual(['exception']);
    expect(wait.attributes['distributed_lock.outcome']).toBe('timeout');
    expect(wait.links).toHaveLength(1);
    expect(JSON.stringify([wait.attributes, wait.events, wait.status]).includes(KEY)).toBe(keys);
    await holder.release();
  }
});

it('a single try that finds the key taken is no span', async () => {
  const locks = open();
  const holder = await locks.acquire(KEY);
  expect(await locks.tryAcquire(KEY, { label })).toBeNull();
  await holder.release();
  expect(sdk.spans().map(({ name }) => name)).toEqual(['hold mutex']);
});

it('a lost hold is an error', async () => {
  const store = memoryStore();
  const locks = open(false, store);
  const lease = await locks.acquire(KEY, { label });
  await store.mutex.release({ key: KEY, owner: lease.owner, keepFor: 0 });
  await lease.renew().catch(() => undefined);
  const hold = one(`hold ${label}`);
  expect(hold.attributes['distributed_lock.outcome']).toBe('lost');
  expect(hold.status.code).toBe(SpanStatusCode.ERROR);
  expect(JSON.stringify([hold.attributes, hold.events, hold.status])).not.toContain(KEY);
  await lease.release();
  expect(named(`hold ${label}`)).toHaveLength(1);
});

it('each key of a multi-lock has a hold, and the body runs in them', async () => {
  const locks = open();
  await sdk.inSpan('request', () => locks.multiLock(['b', 'a']).using(() => sdk.inSpan('query', async () => undefined), { label }));
  const holds = named(`hold ${label}`);
  expect(holds.map(parentOf)).toEqual([idOf(one('request')), idOf(one('request'))]);
  expect(holds.map(idOf)).toContain(parentOf(one('query')));
});

it('the owner id names the trace of its caller while that is sampled, and only then', async () => {
  const locks = open();
  const owner = await sdk.inSpan('request', () => locks.using(KEY, (lease) => lease.owner));
  const { traceId, spanId } = one('request').spanContext();
  expect(owner).toMatch(new RegExp(`^shop@.+:\\d+:[0-9a-f-]{36};${traceId}-${spanId}$`));
  expect(await locks.using(KEY, (lease) => lease.owner)).toMatch(/:[0-9a-f-]{36}$/);
});

it('an unsampled trace has no spans and no trace in its owner ids', async () => {
  await begin({ sampler: new AlwaysOffSampler() });
  const locks = open();
  expect(await sdk.inSpan('request', () => locks.using(KEY, (lease) => lease.owner))).toMatch(/:[0-9a-f-]{36}$/);
  expect(sdk.spans()).toEqual([]);
});

it('a call chain holds its key also in locks of the same store without telemetry', async () => {
  const store = memoryStore();
  const plain = new Locks(store, { logger: false });
  all.push(plain);
  const locks = open(false, store);
  expect(await locks.using(KEY, () => plain.using(KEY, () => 'in', { waitTimeout: 0 }))).toBe('in');
  expect(await plain.using(KEY, () => locks.using(KEY, () => 'in', { waitTimeout: 0 }))).toBe('in');
});

it('a caller that gets the lock in the context of another one has the context of its own call', async () => {
  const locks = open();
  const { read, write } = locks.readWriteLock(KEY);
  const lease = await sdk.inSpan('writer', () => write.acquire({ label: 'writer' }));
  const readers = ['r1', 'r2'].map((each) =>
    sdk.inSpan(each, () => read.using(() => trace.getSpan(context.active()), { label: each, waitTimeout: 5000 })),
  );
  await lease.release();
  await Promise.all(readers);
  for (const each of ['r1', 'r2']) expect(parentOf(one(`hold ${each}`))).toBe(idOf(one(each)));
});

const bad = () => {
  throw new Error('the exporter is broken');
};
const slow: SpanProcessor = {
  onStart: () => undefined,
  onEnd: () => undefined,
  forceFlush: () => new Promise(() => undefined),
  shutdown: () => Promise.resolve(),
};
const throwing: Telemetry = {
  observe: (source) => {
    for (const event of ['acquired', 'waiting', 'released', 'timeout', 'lost'] as const) source.on(event, bad);
    return { request: bad, stop: () => undefined };
  },
};

it.each([
  ['throws in each span', { ...slow, onStart: bad }],
  ['throws at the end of each span', { ...slow, onEnd: bad }],
  ['never answers', slow],
])('spans change no result and no wait when the exporter %s', async (_name, processor) => {
  await begin({ processors: [processor] });
  const locks = new Locks(memoryStore(), { telemetry: [openTelemetry(), throwing], logger: false });
  all.push(locks);
  const lease = await locks.acquire('key');
  const waiter = locks.using('key', () => 'result', { waitTimeout: 60_000, retryInterval: 60_000 });
  await expect(locks.using('key', () => 'never', { waitTimeout: 20 })).rejects.toThrow('Could not acquire');
  await expect(locks.using('other', () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
  const start = performance.now();
  await lease.release();
  expect(await waiter).toBe('result');
  expect(performance.now() - start).toBeLessThan(1000);
  await eventually(async () => expect(total(await sdk.scrape(), 'distributed_lock_hold_duration_seconds_count')).toBe(3));
});
