// Telemetry of locks on a Redis server: of two processes, and in the context of a call.
import { context, trace, type Link } from '@opentelemetry/api';
import { Locks } from 'nestjs-distributed-lock/core';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createHook } from 'node:async_hooks';
import { forkChild, type Child } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { total, type Scrape } from './scrape.js';
import { startSdk } from './sdk.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe('two processes', () => {
  type Message =
    | { type: 'ready' | 'waits' }
    | { type: 'holds'; owner: string }
    | { type: 'done'; oracle: Record<string, number>; prometheus: [string, number][]; openTelemetry: [string, number][] }
    | { type: 'spans'; spans: { name: string; traceId: string; spanId: string; links: Link[] }[] };
  let children: Child<Message>[];
  beforeAll(async () => {
    const env = { TEST_REDIS: JSON.stringify(server.connection) };
    children = await Promise.all([1, 2].map(() => forkChild<Message>('test/telemetry/callers.child.ts', { env })));
    for (const child of children) await child.waitFor('ready');
  });
  afterAll(() => Promise.all(children.map((child) => child.kill())));

  it('link a wait to the trace of the holder in the other one', async () => {
    const [holder, waiter] = children as [Child<Message>, Child<Message>];
    holder.send({ type: 'hold' });
    const { owner } = await holder.waitFor('holds');
    waiter.send({ type: 'wait' });
    await waiter.waitFor('waits');
    holder.send({ type: 'release' });
    const [{ spans: there }, { spans: here }] = await Promise.all([holder.waitFor('spans'), waiter.waitFor('spans')]);
    const hold = there.find(({ name }) => name === 'hold Holder.hold')!;
    const caller = there.find(({ name }) => name === 'holder')!;
    const wait = here.find(({ name }) => name === 'wait Waiter.wait')!;
    expect(owner.endsWith(`;${caller.traceId}-${caller.spanId}`)).toBe(true);
    expect(wait.links.map(({ context, attributes }) => [context.traceId, context.spanId, attributes])).toEqual([
      [hold.traceId, caller.spanId, { 'link.turn': 'first' }],
    ]);
    expect(wait.traceId).not.toBe(hold.traceId);
  });

  /** What both adapters record from events. Gauges and the lag of the event loop depend on when they are read. */
  const RECORDED = [
    'distributed_lock_wait_duration_seconds_count',
    'distributed_lock_grants_total',
    'distributed_lock_hold_duration_seconds_count',
    'distributed_lock_lost_total',
    'distributed_lock_renewal_margin_count',
    'distributed_lock_request_duration_seconds_count',
  ];
  const recorded = (scrape: [string, number][]) =>
    Object.fromEntries(scrape.filter(([series]) => RECORDED.includes(series.split('{')[0]!)).sort());

  it('count 161 calls each exactly as an oracle does, in both adapters', async () => {
    for (const child of children) child.send({ type: 'run' });
    for (const { oracle, prometheus, openTelemetry: collected } of await Promise.all(children.map((child) => child.waitFor('done')))) {
      expect(recorded(collected)).toEqual(recorded(prometheus));
      const scrape: Scrape = new Map(prometheus);
      const sum = (name: string, labels?: Record<string, string>) => total(scrape, `distributed_lock_${name}`, labels);
      const counted: Record<string, number> = {};
      for (const lock of ['Stock.s0', 'Stock.s1', 'Stock.s2', 'Stock.s3']) {
        for (const outcome of ['acquired', 'timeout', 'aborted', 'refused', 'outage']) {
          const number = sum('wait_duration_seconds_count', { lock, outcome });
          if (number > 0) counted[`${lock} ${outcome}`] = number;
        }
        const acquired = counted[`${lock} acquired`];
        expect(sum('grants_total', { lock })).toBe(acquired);
        expect(sum('hold_duration_seconds_count', { lock })).toBe(acquired);
      }
      expect(counted).toEqual(oracle);
      expect(Object.values(oracle).reduce((calls, each) => calls + each)).toBe(161);
      expect(new Set(Object.keys(oracle).map((name) => name.split(' ')[1]))).toEqual(
        new Set(['aborted', 'acquired', 'refused', 'timeout']),
      );
      expect(sum('grants_total', { via: 'handover' })).toBeGreaterThan(0);
      expect(sum('held')).toBe(0);
      expect(sum('waiting')).toBe(0);
    }
  });
});

describe('the context of a span', () => {
  /** What stays in memory after the call that made it, and keeps the context of that call. */
  const LASTING = ['Timeout', 'TCPWRAP', 'TCPCONNECTWRAP', 'PIPEWRAP', 'PIPECONNECTWRAP', 'TLSWRAP', 'DNSCHANNEL'];

  /** The exporter of the SDK has timers. That of ioredis ends with the reply, and its request is a part of the call. */
  const NOT_OURS = /InMemorySpanExporter|setSocketTimeout/;

  it('is in no timer and no socket of ours, whatever the call that made them', async () => {
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
    const [here, there] = [1, 2].map(
      () => new Locks(redisStore({ options: { ...server.connection } }), { telemetry: openTelemetry(), logger: false }),
    );
    hook.enable();
    // The first call opens the connection, the first wait the subscription; a lease is renewed; a maxHold has a timer.
    await sdk.inSpan('request', async () => {
      const lease = await here!.acquire('key', { keyTimeout: 5_000, maxHold: 60_000 });
      const waiters = [here!, there!].map((locks) => locks.using('key', () => undefined, { waitTimeout: 600_000 }));
      const impatient = there!.acquire('key', { waitTimeout: 50 }).catch(() => undefined);
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
    await Promise.all([here!.close(), there!.close()]);
    hook.disable();
    await sdk.stop();
    expect(made).toEqual(expect.arrayContaining(['Timeout', 'PIPEWRAP']));
    expect(inSpan).toEqual([]);
  });
});
