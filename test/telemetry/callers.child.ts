// A process of many callers. It counts by itself what its locks do, and tells what its metrics say.
import { Registry } from 'prom-client';
import { LockAbortedError, Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';
import { tellParent, type ChildMessage } from '../support/child.js';
import { parseScrape } from './scrape.js';
import { startSdk } from './sdk.js';

const CALLERS = 200;
const ROUNDS = 3;
/** Fewer than callers: they wait for each other, in this process and in the others. */
const KEYS = 12;

const sdk = startSdk();
const registry = new Registry();
const store = redisStore({ options: JSON.parse(process.env.TEST_REDIS ?? '{}') as object });
const locks = new Locks(store, { telemetry: [openTelemetry(), prometheus(registry)], logger: false });
const oracle: Record<string, number> = {};
const count = (what: string) => (oracle[what] = (oracle[what] ?? 0) + 1);

async function call(index: number): Promise<void> {
  const key = `stock:${index % KEYS}`;
  const label = `Stock.s${index % 4}`;
  const way = index % 8;
  const [options, signal] =
    way === 0 ? [{ waitTimeout: 20 }] : way === 1 ? [{ waitTimeout: 60_000 }, AbortSignal.timeout(30)] : [{ waitTimeout: 60_000 }];
  try {
    if (way === 2) {
      const lease = await locks.tryAcquire(key, { label });
      count(lease ? `${label} acquired` : `${label} refused`);
      await lease?.release();
      return;
    }
    await locks.using(key, () => pause(1), { label, ...options, signal });
    count(`${label} acquired`);
  } catch (error) {
    if (error instanceof LockTimeoutError) count(`${label} timeout`);
    else if (error instanceof LockAbortedError) count(`${label} aborted`);
    else throw error;
  }
}

async function run(): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) await Promise.all(Array.from({ length: CALLERS }, (_, index) => call(index + round)));
  // The release of a call that ended is answered by now; that of an aborted one may be under way.
  await locks.close();
  tellParent({ type: 'done', oracle, prometheus: [...parseScrape(await registry.metrics())], openTelemetry: [...(await sdk.scrape())] });
}

async function hold(): Promise<void> {
  await sdk.inSpan('holder', async () => {
    const lease = await locks.acquire('shared', { label: 'Holder.hold' });
    tellParent({ type: 'holds', owner: lease.owner });
    await pause(200);
    await lease.release();
  });
  tellParent({ type: 'spans', spans: sdk.spans().map((span) => ({ name: span.name, ...span.spanContext(), links: span.links })) });
}

async function wait(): Promise<void> {
  await sdk.inSpan('waiter', () => locks.using('shared', () => undefined, { label: 'Waiter.wait', waitTimeout: 20_000 }));
  tellParent({ type: 'spans', spans: sdk.spans().map((span) => ({ name: span.name, ...span.spanContext(), links: span.links })) });
}

process.on('message', ({ type }: ChildMessage) => {
  const orders: Record<string, () => Promise<void>> = { run, hold, wait };
  orders[type]!().catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
tellParent({ type: 'ready' });
