// An application and a feature library, each with a copy of ours of its own, in one process: they share stores, holds, errors and the app's locks.
const assert = require('node:assert/strict');

// Programs run side by side on one server.
const NAMESPACE = `copies-${process.pid}:`;
const KEY = `${NAMESPACE}shared-locks`;

function decorate(target, method, decorator) {
  const { prototype } = target;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method);
  Object.defineProperty(prototype, method, decorator(prototype, method, descriptor) ?? descriptor);
}

/** A service that locks by one copy, and may call another service while it does. */
function createService({ Injectable }, { lock }, options = {}) {
  class Service {
    async work(next) {
      return [lock.currentLease(), ...((await next?.work()) ?? [])];
    }
  }
  decorate(Service, 'work', lock.DistributedLock({ value: 'shared', keyTimeout: 60_000, retryCount: 1, ...options }));
  Injectable()(Service);
  return Service;
}

/** A call across the copies takes the key once, whoever begins; a stranger is kept out. */
async function calls({ common, core }, app, feature, store) {
  const AppService = createService(common, app);
  const FeatureService = createService(common, feature);
  const { InjectLocks } = feature.lock;
  class FeatureModule {}
  InjectLocks()(FeatureModule.prototype, 'locks');
  common.Module({ providers: [FeatureService], exports: [FeatureService] })(FeatureModule);
  class AppModule {}
  common.Module({
    imports: [app.lock.DistributedLockModule.forRoot({ store, namespace: NAMESPACE }), FeatureModule],
    providers: [AppService],
  })(AppModule);
  const nest = await core.NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
  const locks = nest.get(app.lock.Locks);
  assert.equal(nest.get(FeatureModule).locks, locks);
  const acquired = [];
  locks.on('acquired', ({ key }) => void acquired.push(key));
  const [own, others] = [nest.get(AppService), nest.get(FeatureService)];
  for (const [outer, inner] of [
    [own, others],
    [others, own],
  ]) {
    const leases = await outer.work(inner);
    assert.deepEqual(
      leases.map(({ key }) => key),
      [KEY, KEY],
    );
    assert.equal(leases[0].fencingToken, leases[1].fencingToken);
    assert.deepEqual(acquired.splice(0), [KEY]);
  }
  const stranger = await locks.acquire('shared-locks', { keyTimeout: 60_000 });
  for (const service of [own, others]) await assert.rejects(service.work(), feature.lock.LockTimeoutError);
  await stranger.release();
  await nest.close();
}

/** The library may register a store of its own, under a name of its own, before the app's or after. */
async function ownStores({ common, core }, app, feature) {
  for (const isFirst of [true, false]) {
    const AppService = createService(common, app);
    const FeatureService = createService(common, feature, { store: 'feature' });
    class FeatureModule {}
    common.Module({
      imports: [feature.lock.DistributedLockModule.forRoot({ name: 'feature', store: feature.memoryStore(), namespace: 'feature:' })],
      providers: [FeatureService],
    })(FeatureModule);
    const own = app.lock.DistributedLockModule.forRoot({ store: app.memoryStore(), namespace: 'app:' });
    class AppModule {}
    common.Module({ imports: isFirst ? [FeatureModule, own] : [own, FeatureModule], providers: [AppService] })(AppModule);
    const nest = await core.NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    const leases = await nest.get(AppService).work(nest.get(FeatureService));
    assert.deepEqual(
      leases.map(({ key }) => key),
      ['app:shared-locks', 'feature:shared-locks'],
    );
    await nest.close();
  }
}

/** Both copies' `Locks` over one store object know each other's holds, and only the last one to close ends it. */
async function oneStore(app, feature, store) {
  const [first, second] = [app, feature].map(({ lock }) => new lock.Locks(store, { namespace: NAMESPACE }));
  const held = await first.acquire('order:42', { keyTimeout: 60_000 });
  assert.equal(await second.tryAcquire('order:42'), null);
  await held.release();
  await first.using('order:42', async (outer) => {
    assert.equal(feature.lock.currentLease(), outer);
    await second.using('order:42', async (inner) => assert.equal(inner.fencingToken, outer.fencingToken), { waitTimeout: 0 });
    outer.assertHeld();
  });
  await first.close();
  assert.equal(await second.using('order:42', async ({ key }) => key), `${NAMESPACE}order:42`, 'a store was closed that another uses');
  await second.close();
}

/** A filter of one copy answers for an error of the other. */
async function errors({ common, core }, app, feature) {
  const failing = {
    timeout: new feature.lock.LockTimeoutError('busy'),
    aborted: new feature.lock.LockAbortedError('closing', { reason: 'shutdown' }),
    store: new feature.lock.StoreError('down', { transient: true }),
    config: new feature.lock.LockConfigError('wrong'),
  };
  for (const error of Object.values(failing)) {
    const twin = app.lock[error.name];
    assert.ok(error instanceof twin && error instanceof app.lock.LockError && error instanceof Error);
    for (const other of Object.values(failing)) assert.equal(other instanceof twin, other === error);
  }
  class Controller {
    fail(error) {
      throw failing[error];
    }
  }
  decorate(Controller, 'fail', common.Get(':error'));
  common.Param('error')(Controller.prototype, 'fail', 0);
  common.Controller()(Controller);
  class AppModule {}
  const filter = { provide: core.APP_FILTER, useClass: app.lock.LockExceptionFilter };
  common.Module({ controllers: [Controller], providers: [filter] })(AppModule);
  const nest = await core.NestFactory.create(AppModule, { logger: false, abortOnError: false });
  await nest.listen(0, '127.0.0.1');
  const url = await nest.getUrl();
  const statusOf = async (error) => (await fetch(`${url}/${error}`)).status;
  assert.deepEqual(await Promise.all(Object.keys(failing).map(statusOf)), [423, 503, 503, 500]);
  await nest.close();
}

module.exports = async function scenario({ common, core, app, feature }) {
  process.exitCode = 1; // until the end is reached: a promise that nobody settles lets a process end, too
  assert.notEqual(app.lock.DistributedLock, feature.lock.DistributedLock);
  const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  for (const owner of [app, feature]) {
    for (const store of [() => owner.memoryStore(), () => owner.redisStore({ url })]) {
      await calls({ common, core }, app, feature, store());
      await oneStore(app, feature, store());
    }
  }
  await errors({ common, core }, app, feature);
  await ownStores({ common, core }, app, feature);
  process.exitCode = 0;
};
