import 'reflect-metadata';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { DistributedLockModule, Locks, type DistributedLockModuleOptions, type LockStore } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const running: INestApplication[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

export type Booted = Awaited<ReturnType<typeof boot>>;

/** A running app with one store under the name `'default'`. It is closed after the test. */
export async function boot(
  metadata: ModuleMetadata,
  options: Partial<DistributedLockModuleOptions> = {},
  configure?: (app: INestApplication) => void,
  create?: (module: TestingModule) => INestApplication,
) {
  const store: LockStore = options.store ?? memoryStore();
  const forRoot = DistributedLockModule.forRoot({ logger: false, ...options, store });
  const app = await start(Test.createTestingModule({ ...metadata, imports: [forRoot, ...(metadata.imports ?? [])] }), configure, create);
  const locks = app.get(Locks);
  /** Every key that was taken at the store, in order. */
  const acquired: string[] = [];
  locks.on('acquired', ({ key }) => void acquired.push(key));
  /** Every key that a caller found taken and waits for, in order. */
  const waiting: string[] = [];
  locks.on('waiting', ({ key }) => void waiting.push(key));
  /** The provider of this class. */
  const get = <T>(type: new (...args: never[]) => T): T => app.get(type);
  return { app, store, locks, acquired, waiting, get, isTaken: (key: string) => isTaken(store, key) };
}

/** Compiles and initializes what a test has put together itself. */
export async function start(
  builder: TestingModuleBuilder,
  configure?: (app: INestApplication) => void,
  create = (module: TestingModule): INestApplication => module.createNestApplication({ logger: false }),
): Promise<INestApplication> {
  const app = create(await builder.compile());
  configure?.(app);
  running.push(app);
  return app.init();
}

/** Serves it on a free port; returns the address. */
export async function listen(app: INestApplication): Promise<string> {
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

export async function isTaken(store: LockStore, key: string): Promise<boolean> {
  return (await store.mutex.check({ key, owner: 'nobody' })).state === 'taken';
}
