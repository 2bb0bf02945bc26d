// A Nest application with a health endpoint, in plain JavaScript. Its store is reached through a proxy of its own, which goes away and comes back.
const assert = require('node:assert/strict');
const { once } = require('node:events');
const { connect, createServer } = require('node:net');
const { setTimeout: sleep } = require('node:timers/promises');

const WITHIN = 500;

/** Forwards connections to Redis. */
async function startProxy(url) {
  const { hostname, port } = new URL(url);
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(Number(port || 6379), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream).pipe(client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    url: `redis://127.0.0.1:${address.port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    start: () => once(server.listen(address.port, '127.0.0.1'), 'listening'),
  };
}

function createModule({ common, terminus, lock, LockHealthIndicator }, store) {
  const { HealthCheckService, TerminusModule } = terminus;
  class HealthController {
    ready() {
      return this.health.check([() => this.locks.isHealthy('locks', { within: WITHIN })]);
    }
  }
  common.Get('ready')(HealthController.prototype, 'ready', Object.getOwnPropertyDescriptor(HealthController.prototype, 'ready'));
  common.Inject(HealthCheckService)(HealthController.prototype, 'health');
  common.Inject(LockHealthIndicator)(HealthController.prototype, 'locks');
  common.Controller()(HealthController);
  class AppModule {}
  common.Module({
    imports: [TerminusModule.forRoot({ logger: false }), lock.DistributedLockModule.forRoot({ store, logger: false })],
    controllers: [HealthController],
    providers: [LockHealthIndicator],
  })(AppModule);
  return AppModule;
}

async function play(modules, adapter) {
  const proxy = await startProxy(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
  const store = modules.redisStore({ url: proxy.url, requestTimeout: 1000 });
  const app = await modules.core.NestFactory.create(createModule(modules, store), ...adapter, { logger: false });
  await app.listen(0, '127.0.0.1');
  const ask = async () => {
    const response = await fetch(`${await app.getUrl()}/ready`);
    const { details } = await response.json();
    return { status: response.status, locks: details.locks };
  };
  const until = async (status) => {
    const start = performance.now();
    for (let answer = await ask(); answer.status !== status; answer = await ask()) {
      assert.ok(performance.now() - start < 5000, `still ${answer.status}`);
      await sleep(20);
    }
  };

  await until(200);
  assert.equal((await ask()).locks.status, 'up');
  proxy.stop();
  const start = performance.now();
  const away = await ask();
  assert.equal(away.status, 503);
  assert.equal(away.locks.status, 'down');
  assert.ok(performance.now() - start < WITHIN + 1000, 'the answer came late');
  await proxy.start();
  await until(200);
  await app.close();
  proxy.stop();
}

module.exports = async (modules) => {
  await play(modules, []);
  await play(modules, [new modules.fastify.FastifyAdapter()]);
};
