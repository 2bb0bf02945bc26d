import { NestFactory } from '@nestjs/core';
import { Locks } from 'nestjs-distributed-lock';
import { register } from 'prom-client';
import { parseScrape, total } from '../telemetry/scrape.js';
import { startSdk } from '../telemetry/sdk.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import type * as Telemetry from './telemetry.js';

useRedisOfEnv();
let snippets: typeof Telemetry;

beforeAll(async () => {
  snippets = await import('./telemetry.js'); // it reads REDIS_URL
});
beforeEach(() => register.clear());

it('an app has the metrics of its locks at /metrics', async () => {
  const app = await NestFactory.create(snippets.MeasuredModule, { logger: false, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  await app.get(Locks).using('order:42', () => undefined, { label: 'Orders.pay' });
  const response = await fetch(`${await app.getUrl()}/metrics`);
  expect(response.headers.get('content-type')).toContain('version=0.0.4');
  expect(total(parseScrape(await response.text()), 'distributed_lock_grants_total', { lock: 'Orders.pay', store: 'redis' })).toBe(1);
  await app.close();
});

it('an app has metrics and spans for OpenTelemetry', async () => {
  const sdk = startSdk();
  const app = await NestFactory.createApplicationContext(snippets.TracedModule, { logger: false, abortOnError: false });
  await app.get(Locks).using('order:42', () => undefined, { label: 'Orders.pay' });
  await app.close();
  expect(sdk.spans().map(({ name }) => name)).toEqual(['hold Orders.pay']);
  expect(total(await sdk.scrape(), 'distributed_lock_grants_total', { lock: 'Orders.pay' })).toBe(1);
  await sdk.stop();
});
