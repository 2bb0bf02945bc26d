// The dashboard in an app with a prefix, versions, an interceptor that wraps what is returned, and CORS for everybody; without a body parser, too.
require('reflect-metadata');
const assert = require('node:assert/strict');
const { Module, VersioningType } = require('@nestjs/common');
const { APP_INTERCEPTOR, NestFactory } = require('@nestjs/core');
const { DistributedLockModule, Locks } = require('nestjs-distributed-lock');
const { DistributedLockDashboardModule } = require('nestjs-distributed-lock/dashboard');
const { memoryStore } = require('nestjs-distributed-lock/memory');
const { map } = require('rxjs');

const adapterOf = {
  express: () => [],
  fastify: () => [new (require('@nestjs/platform-fastify').FastifyAdapter)()],
}[process.argv[2]];
const HEADERS = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json', 'x-lock-dashboard': '1' };

async function scenario(options) {
  class AppModule {}
  const wrap = { intercept: (_context, next) => next.handle().pipe(map((data) => ({ wrapped: data }))) };
  Module({
    imports: [
      DistributedLockModule.forRoot({ store: memoryStore() }),
      DistributedLockDashboardModule.forRoot({ path: 'ops/locks', authorize: () => ({ by: 'anna' }) }),
    ],
    providers: [{ provide: APP_INTERCEPTOR, useValue: wrap }],
  })(AppModule);
  const app = await NestFactory.create(AppModule, ...adapterOf(), { logger: false, abortOnError: false, ...options });
  app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI });
  app.enableCors({ origin: true, credentials: true });
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/api/ops/locks`;
  const page = await fetch(url);
  assert.match(await page.text(), /^<!doctype html>/i);
  assert.match(page.headers.get('content-security-policy'), /^default-src 'none'/);

  const lease = await app.get(Locks).acquire('order:42', { label: 'Orders.pay' });
  const state = await (await fetch(`${url}/state`, { headers: HEADERS })).json();
  assert.equal(state.rows[0].holder.label, 'Orders.pay');
  const key = await (await fetch(`${url}/key?store=default&key=order:42`, { headers: HEADERS })).json();
  assert.equal(key.holders[0].owner, lease.owner);

  const { owner, fencingToken: token } = lease;
  const body = JSON.stringify({ store: 'default', key: 'order:42', owner, token, reason: 'it hangs', grace: 0, keepFor: 0 });
  const forged = await fetch(`${url}/release`, { method: 'POST', body, headers: { ...HEADERS, 'sec-fetch-site': 'cross-site' } });
  assert.equal(forged.status, 403);
  assert.equal(lease.signal.aborted, false);
  const released = await fetch(`${url}/release`, { method: 'POST', body, headers: HEADERS });
  assert.deepEqual([released.status, (await released.json()).outcome], [200, 'forced']);
  assert.equal(lease.signal.reason.revoked.by, 'anna');
  await app.close();
}

process.exitCode = 1; // until the end is reached
scenario({})
  .then(() => scenario({ bodyParser: false }))
  .then(() => (process.exitCode = 0));
