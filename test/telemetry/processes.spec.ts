import type { Link } from '@opentelemetry/api';
import { forkChild, type Child } from '../support/child.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { total, type Scrape } from './scrape.js';

type Told =
  | { type: 'ready' }
  | { type: 'holds'; owner: string }
  | { type: 'done'; oracle: Record<string, number>; prometheus: [string, number][]; openTelemetry: [string, number][] }
  | { type: 'spans'; spans: { name: string; traceId: string; spanId: string; links: Link[] }[] };

const CALLS = 3 * 200;
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

describe('three processes on a Redis server', () => {
  let server: RedisServer;
  let children: Child<Told>[];

  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    const env = { TEST_REDIS: JSON.stringify(server.connection) };
    children = await Promise.all([1, 2, 3].map(() => forkChild<Told>('test/telemetry/callers.child.ts', { env })));
    await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
  });
  afterEach(() => Promise.all(children.map((child) => child.kill())));
  afterAll(() => server.stop());

  it('count 200 callers each exactly as an oracle does, in both adapters', async () => {
    for (const child of children) child.send({ type: 'run' });
    const told = await Promise.all(children.map((child) => child.waitFor('done', { within: 60_000 })));
    for (const { oracle, prometheus, openTelemetry } of told) {
      expect(recorded(openTelemetry)).toEqual(recorded(prometheus));
      const scrape: Scrape = new Map(prometheus);
      const counted: Record<string, number> = {};
      for (const lock of ['Stock.s0', 'Stock.s1', 'Stock.s2', 'Stock.s3']) {
        for (const outcome of ['acquired', 'timeout', 'aborted', 'refused', 'outage']) {
          const number = total(scrape, 'distributed_lock_wait_duration_seconds_count', { lock, outcome });
          if (number > 0) counted[`${lock} ${outcome}`] = number;
        }
        const acquired = counted[`${lock} acquired`];
        expect(total(scrape, 'distributed_lock_grants_total', { lock })).toBe(acquired);
        expect(total(scrape, 'distributed_lock_hold_duration_seconds_count', { lock })).toBe(acquired);
      }
      expect(counted).toEqual(oracle);
      expect(total(scrape, 'distributed_lock_wait_duration_seconds_count')).toBe(CALLS);
      expect(total(scrape, 'distributed_lock_grants_total', { via: 'handover' })).toBeGreaterThan(0);
      expect(total(scrape, 'distributed_lock_held')).toBe(0);
      expect(total(scrape, 'distributed_lock_waiting')).toBe(0);
    }
    const outcomes = new Set(told.flatMap(({ oracle }) => Object.keys(oracle).map((name) => name.split(' ')[1])));
    expect([...outcomes].sort()).toEqual(['aborted', 'acquired', 'refused', 'timeout']);
  });

  it('link a wait to the trace of the holder in another process', async () => {
    const [holder, waiter] = children as [Child<Told>, Child<Told>];
    holder.send({ type: 'hold' });
    const { owner } = await holder.waitFor('holds');
    waiter.send({ type: 'wait' });
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
});
