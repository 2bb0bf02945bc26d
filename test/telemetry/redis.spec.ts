// Telemetry of locks on a Redis server: beside those of another process, and in the context of a call.
import { context, trace } from '@opentelemetry/api';
import { Registry } from 'prom-client';
import { Locks, type LockError, type Telemetry } from 'nestjs-distributed-lock/core';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createHook } from 'node:async_hooks';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { parseScrape, total, type Scrape } from './scrape.js';
import { startSdk } from './sdk.js';

let server: RedisServer;
beforeAll(async () => void (server = await startRedis()));
afterAll(() => server.stop());

/** As those of two processes: over connections of their own. */
const open = (telemetry: Telemetry[]) =>
  new Locks(redisStore({ options: { ...server.connection }, requestTimeout: 20_000 }), { telemetry, logger: false });

it('a wait is linked to the trace of a holder elsewhere', async () => {
  const sdk = startSdk();
  const [here, there] = [open([openTelemetry()]), open([openTelemetry()])];
  const lease = await sdk.inSpan('holder', () => there.acquire('shared', { label: 'Holder.hold' }));
  const waits = new Promise((resolve) => here.on('waiting', resolve));
  const waiter = sdk.inSpan('waiter', () => here.using('shared', () => undefined, { label: 'Waiter.wait', waitTimeout: 600_000 }));
  await waits;
  await lease.release();
  await waiter;
  const named = (of: string) => sdk.spans().find(({ name }) => name === of)!;
  const [caller, wait] = [named('holder').spanContext(), named('wait Waiter.wait')];
  expect(lease.owner.endsWith(`;${caller.traceId}-${caller.spanId}`)).toBe(true);
  expect(wait.links.map(({ context: { traceId, spanId }, attributes }) => [traceId, spanId, attributes])).toEqual([
    [caller.traceId, caller.spanId, { 'link.turn': 'first' }],
  ]);
  expect(wait.spanContext().traceId).not.toBe(caller.traceId);
  await Promise.all([here.close(), there.close(), sdk.stop()]);
});

/** What both adapters record from events. Gauges and the lag of the event loop depend on when they are read. */
const RECORDED = ['wait_duration_seconds_count', 'grants_total', 'hold_duration_seconds_count', 'lost_total', 'renewal_margin_count', 'request_duration_seconds_count']; // prettier-ignore
const recorded = (scrape: Scrape) =>
  Object.fromEntries([...scrape].filter(([series]) => RECORDED.includes(series.split('{')[0]!.replace('distributed_lock_', ''))).sort());

/** One in four gives up, gives up by its signal, or tries once only: half of those at a key that stays held. Counts what became of it. */
async function call(locks: Locks, index: number, caller: AbortSignal, oracle: Record<string, number> = {}): Promise<void> {
  const way = index % 12;
  const key = index % 24 < 3 ? 'held' : `stock:${index % 6}`;
  const label = `Stock.s${index % 4}`;
  const count = (what: string) => (oracle[`${label} ${what}`] = (oracle[`${label} ${what}`] ?? 0) + 1);
  if (way === 2) {
    const lease = await locks.tryAcquire(key, { label });
    count(lease ? 'acquired' : 'refused');
    await lease?.release();
    return;
  }
  const signal = way === 1 ? caller : undefined;
  const work = () => new Promise(setImmediate);
  await locks.using(key, work, { label, waitTimeout: way === 0 ? 20 : 600_000, signal }).then(
    () => count('acquired'),
    ({ code }: LockError) => count(code.replace('LOCK_', '').toLowerCase()),
  );
}

it('metrics count 160 calls among those of another process exactly as an oracle does, in both adapters', async () => {
  const sdk = startSdk();
  const registry = new Registry();
  const [here, there] = [open([openTelemetry(), prometheus(registry)]), open([])];
  const held = await there.acquire('held');
  const caller = new AbortController();
  let waiting = 0;
  here.on('waiting', () => waiting++);
  const oracle: Record<string, number> = {};
  const calls = Array.from({ length: 160 }, (_, index) => [call(here, index, caller.signal, oracle), call(there, index, caller.signal)]);
  await eventually(() => waiting > 20);
  caller.abort();
  await Promise.all(calls.flat());
  await held.release();
  // The release of a call that ended is answered by now; that of an aborted one may be under way.
  await Promise.all([here.close(), there.close()]);
  const scrape = parseScrape(await registry.metrics());
  expect(recorded(await sdk.scrape())).toEqual(recorded(scrape));
  const sum = (name: string, labels?: Record<string, string>) => total(scrape, `distributed_lock_${name}`, labels);
  const counted: Record<string, number> = {};
  for (const lock of ['Stock.s0', 'Stock.s1', 'Stock.s2', 'Stock.s3']) {
    for (const outcome of ['acquired', 'timeout', 'aborted', 'refused', 'outage']) {
      const number = sum('wait_duration_seconds_count', { lock, outcome });
      if (number > 0) counted[`${lock} ${outcome}`] = number;
    }
    for (const name of ['grants_total', 'hold_duration_seconds_count']) expect(sum(name, { lock })).toBe(counted[`${lock} acquired`]);
  }
  expect(counted).toEqual(oracle);
  expect(Object.values(oracle).reduce((all, each) => all + each)).toBe(160);
  expect(new Set(Object.keys(oracle).map((name) => name.split(' ')[1]))).toEqual(new Set(['aborted', 'acquired', 'refused', 'timeout']));
  expect(sum('grants_total', { via: 'handover' })).toBeGreaterThan(0);
  expect([sum('held'), sum('waiting')]).toEqual([0, 0]);
  await sdk.stop();
});

/** What stays in memory after the call that made it, and keeps the context of that call. */
const LASTING = ['Timeout', 'TCPWRAP', 'TCPCONNECTWRAP', 'PIPEWRAP', 'PIPECONNECTWRAP', 'TLSWRAP', 'DNSCHANNEL'];

/** The exporter of the SDK has timers. That of ioredis ends with the reply, and its request is a part of the call. */
const NOT_OURS = /InMemorySpanExporter|setSocketTimeout/;

it('the context of a span is in no timer and no socket of ours, whatever the call that made them', async () => {
  const sdk = startSdk();
  const made: string[] = [];
  const inSpan: string[] = [];
  const hook = createHook({
    init(_id, type) {
      if (!LASTING.includes(type)) return;
      made.push(type);
      const { stack = '' } = new Error();
      if (trace.getSpan(context.active()) && !NOT_OURS.test(stack)) inSpan.push(`${type} ${stack}`);
    },
  });
  const [here, there] = [open([openTelemetry()]), open([openTelemetry()])];
  hook.enable();
  // The first call opens the connection, the first wait the subscription; a lease is renewed; a maxHold has a timer.
  await sdk.inSpan('request', async () => {
    const lease = await here.acquire('key', { keyTimeout: 5_000, maxHold: 60_000 });
    const waiters = [here, there].map((locks) => locks.using('key', () => undefined, { waitTimeout: 600_000 }));
    const impatient = there.acquire('key', { waitTimeout: 50 }).catch(() => undefined);
    // The timers of this wait are not ours, so they are made outside of the span.
    const isRenewed = () => lease.remaining() > 4_000;
    const renewed = context.with(trace.deleteSpan(context.active()), async () => {
      await eventually(() => !isRenewed());
      await eventually(isRenewed);
    });
    await Promise.all([impatient, renewed]);
    await lease.release();
    await Promise.all(waiters);
  });
  await Promise.all([here.close(), there.close()]);
  hook.disable();
  await sdk.stop();
  expect(made).toEqual(expect.arrayContaining(['Timeout', 'PIPEWRAP']));
  expect(inSpan).toEqual([]);
});
