// A process of many callers. It counts by itself what its locks do, and reports what its metrics say.
import { Registry } from 'prom-client';
import { LockAbortedError, Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent, type ChildMessage } from '../support/child.js';
import { parseScrape } from './scrape.js';
import { startSdk } from './sdk.js';

const CALLS = 160;
/** Fewer than callers: they wait for each other, in this process and in the others. */
const KEYS = 6;
const HELD = `held:${process.pid}`;

const sdk = startSdk();
const registry = new Registry();
const store = redisStore({ options: JSON.parse(process.env.TEST_REDIS ?? '{}') as object, requestTimeout: 20_000 });
const locks = new Locks(store, { telemetry: [openTelemetry(), prometheus(registry)], logger: false });
const oracle: Record<string, number> = {};
const count = (what: string) => (oracle[what] = (oracle[what] ?? 0) + 1);

/** One in four gives up, gives up by its signal, or tries once only: half of those at a key that stays held. */
async function call(index: number): Promise<void> {
  const way = index % 12;
  const key = index % 24 < 3 ? HELD : `stock:${index % KEYS}`;
  const label = `Stock.s${index % 4}`;
  try {
    if (way === 2) {
      const lease = await locks.tryAcquire(key, { label });
      count(lease ? `${label} acquired` : `${label} refused`);
      await lease?.release();
      return;
    }
    const signal = way === 1 ? AbortSignal.timeout(30) : undefined;
    await locks.using(key, () => pause(1), { label, waitTimeout: way === 0 ? 20 : 600_000, signal });
    count(`${label} acquired`);
  } catch (error) {
    if (error instanceof LockTimeoutError) count(`${label} timeout`);
    else if (error instanceof LockAbortedError) count(`${label} aborted`);
    else throw error;
  }
}

async function run(): Promise<void> {
  const held = await locks.acquire(HELD, { label: 'Stock.s0' });
  count('Stock.s0 acquired');
  await Promise.all(Array.from({ length: CALLS }, (_, index) => call(index)));
  await held.release();
  // The release of a call that ended is answered by now; that of an aborted one may be under way.
  await locks.close();
  tellParent({ type: 'done', oracle, prometheus: [...parseScrape(await registry.metrics())], openTelemetry: [...(await sdk.scrape())] });
}

const spans = () => sdk.spans().map((span) => ({ name: span.name, ...span.spanContext(), links: span.links }));

async function hold(): Promise<void> {
  await sdk.inSpan('holder', async () => {
    const lease = await locks.acquire('shared', { label: 'Holder.hold' });
    tellParent({ type: 'holds', owner: lease.owner });
    await new Promise((resolve) => process.once('message', resolve));
    await lease.release();
  });
  tellParent({ type: 'spans', spans: spans() });
}

async function wait(): Promise<void> {
  locks.on('waiting', () => tellParent({ type: 'waits' }));
  await sdk.inSpan('waiter', () => locks.using('shared', () => undefined, { label: 'Waiter.wait', waitTimeout: 600_000 }));
  tellParent({ type: 'spans', spans: spans() });
}

process.on('message', ({ type }: ChildMessage) => {
  const orders: Record<string, () => Promise<void>> = { run, hold, wait };
  orders[type]?.().catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
tellParent({ type: 'ready' });
