import { Logger, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Agent, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LockAbortedError, LockConfigError, runStandby, type LockStore, type Locks, type StandbyOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { ask, candidate, type Diary, lose, openLocks, serverOf } from './standby-apps.js';

@Module({})
class Nothing {}

beforeAll(() => Logger.overrideLogger(false));

const listens = (diary: Diary) => eventually(() => diary.lines.includes('listen 1') && diary.server.listening);
const failure = new Error('it cannot');
const fail = () => Promise.reject(failure);
const isFree = async (locks: Locks) => {
  const lease = await locks.tryAcquire('app-leader');
  return lease !== null && lease.release();
};

describe('a standby that cannot go on', () => {
  let locks: Locks;
  beforeEach(() => (locks = openLocks()));

  it('rejects with what create threw, before any election', async () => {
    const { standby, diary } = candidate(locks, { create: fail });
    await expect(standby.done).rejects.toBe(failure);
    expect([diary.terms, await isFree(locks)]).toEqual([[], true]);
  });

  it('rejects with what prepare threw, and closes what it has built', async () => {
    const { standby, diary } = candidate(locks, { prepare: fail });
    await expect(standby.done).rejects.toBe(failure);
    expect([diary.lines, await isFree(locks)]).toEqual([['create 1', 'destroy 1', 'shutdown 1'], true]);
  });

  it.each([
    { how: 'rejected with', start: fail },
    {
      how: 'threw',
      start: () => {
        throw failure;
      },
    },
  ])('rejects with what start $how: the app is closed, and the term given back before', async ({ start }) => {
    const { standby, diary } = candidate(locks, { start });
    await expect(standby.done).rejects.toBe(failure);
    expect([diary.lines.at(-1), await isFree(locks), standby.isLeader()]).toEqual(['shutdown 1', true, false]);
  });

  it('rejects with what start threw, also where closing fails as well', async () => {
    const close = () => Promise.reject(new Error('nor close'));
    const prepare = (app: INestApplication) => void Object.defineProperty(app, 'close', { value: close, configurable: true });
    const { standby } = candidate(locks, { start: fail, prepare });
    await expect(standby.done).rejects.toBe(failure);
    expect(await isFree(locks)).toBe(true);
  });

  /** Nest 10 and 11 reject with what a hook of the shutdown throws, Nest 12 logs it. */
  const cannotClose = (app: INestApplication) => void Object.defineProperty(app, 'close', { value: fail, configurable: true });

  it('rejects with what closing the app threw, and does not listen any more', async () => {
    const { standby, diary } = candidate(locks, { prepare: cannotClose });
    await listens(diary);
    await expect(standby.stop()).rejects.toBe(failure);
    expect([diary.server.listening, await isFree(locks)]).toEqual([false, true]);
  });

  it('builds no further container where the app of a lost term does not close', async () => {
    const { standby, diary } = candidate(locks, { prepare: cannotClose });
    await listens(diary);
    await lose(locks, diary.term);
    await expect(standby.done).rejects.toBe(failure);
    expect(diary.apps).toHaveLength(1);
  });

  it('cuts connections that outlast the shutdownTimeout, and goes on', async () => {
    const { standby, diary } = candidate(locks, { shutdownTimeout: 50 });
    await listens(diary);
    const slow = ask(diary.app, 'slow').catch((error: Error) => error.message);
    await eventually(() => diary.requests.arrived === 1);
    await standby.stop();
    expect([await slow, diary.lines.at(-1)]).toEqual(['fetch failed', 'shutdown 1']);
    diary.requests.open();
  });

  it('rejects when the app does not close for all that, and gives the term back', async () => {
    const hook = new Gate();
    const { standby, diary } = candidate(locks, { shutdownTimeout: 50 });
    diary.onDestroy = () => hook.pass();
    await listens(diary);
    await expect(standby.stop()).rejects.toThrow('has not closed');
    expect(await isFree(locks)).toBe(true);
    hook.open();
  });

  it('rejects when its locks are closed under it, whether it leads or not', async () => {
    const { standby, diary } = candidate(locks);
    await listens(diary);
    const other = openLocks(locks.store);
    const waits = new Promise((resolve) => other.on('waiting', resolve));
    const next = candidate(other);
    await waits;
    await other.close();
    await expect(next.standby.done).rejects.toBeInstanceOf(LockAbortedError);
    expect(next.diary.lines.at(-1)).toBe('shutdown 1');
    await locks.close();
    await expect(standby.done).rejects.toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    expect([diary.apps.length, diary.lines.at(-1)]).toEqual([1, 'shutdown 1']);
  });

  it('rejects where no retry at the store helps, and closes what it has built', async () => {
    const store = memoryStore();
    const acquire = () => Promise.reject(new Error('NOAUTH'));
    const mutex = Object.assign(Object.create(store.mutex) as LockStore['mutex'], { acquire });
    const refusing: LockStore = { ...store, mutex };
    const { standby, diary } = candidate(openLocks(refusing));
    await expect(standby.done).rejects.toMatchObject({ name: 'StoreError' });
    expect(diary.lines.at(-1)).toBe('shutdown 1');
  });

  it('refuses a container that has begun already, as createApplicationContext makes them', async () => {
    const create = () => NestFactory.createApplicationContext(Nothing, { logger: false, abortOnError: false });
    const standby = runStandby({ locks, name: 'app', create, start: () => undefined });
    await expect(standby.done).rejects.toThrow(LockConfigError);
    expect(await isFree(locks)).toBe(true);
  });
});

describe('the end of an app', () => {
  it('is not held up by a connection that is kept alive after its last answer', async () => {
    const { standby, diary } = candidate(openLocks());
    await listens(diary);
    const agent = new Agent({ keepAlive: true });
    const { port } = diary.server.address() as AddressInfo;
    const answered = new Promise((resolve) =>
      get({ port, host: '127.0.0.1', path: '/slow', agent }, (res) => res.resume().on('end', resolve)),
    );
    await eventually(() => diary.requests.arrived === 1);
    const close = jest.spyOn(diary.server, 'close');
    const stopped = standby.stop();
    await eventually(() => close.mock.calls.length === 2); // Nest's own, which closes idle connections, has been
    diary.requests.open();
    await answered;
    const start = performance.now();
    await stopped;
    expect(performance.now() - start).toBeLessThan(2_500); // Node keeps them for 5 s
    agent.destroy();
  });

  it.each(['Fastify', 'no server at all'])('is the same with %s', async (kind) => {
    const locks = openLocks();
    const create = () =>
      NestFactory.create(Nothing, ...((kind === 'Fastify' ? [new FastifyAdapter()] : []) as [FastifyAdapter]), {
        logger: false,
        abortOnError: false,
      });
    const begun = new Gate();
    const apps: Awaited<ReturnType<typeof create>>[] = [];
    const standby = runStandby({
      locks,
      name: 'app',
      create,
      async start(app) {
        apps.push(app);
        await (kind === 'Fastify' ? app.listen(0, '127.0.0.1') : app.init());
        begun.arrived++;
      },
    });
    await eventually(() => begun.arrived === 1);
    expect(serverOf(apps[0]!).listening).toBe(kind === 'Fastify');
    const stopped = standby.stop();
    expect(serverOf(apps[0]!).listening).toBe(false);
    await stopped;
    expect(await isFree(locks)).toBe(true);
  });
});

describe('runStandby refuses', () => {
  const create = () => NestFactory.create(Nothing);
  const start = () => undefined;
  const locks = () => openLocks();
  const rows: [string, () => Record<string, unknown> | undefined][] = [
    ['options', () => undefined],
    ['"locks"', () => ({ name: 'app', create, start })],
    ['name', () => ({ locks: locks(), create, start })],
    ['"create"', () => ({ locks: locks(), name: 'app', start })],
    ['"start"', () => ({ locks: locks(), name: 'app', create, start: 3000 })],
    ['"shutdownTimeout"', () => ({ locks: locks(), name: 'app', create, start, shutdownTimeout: -1 })],
    ['"keyTimeout"', () => ({ locks: locks(), name: 'app', create, start, keyTimeout: 9 })],
    ['"port"', () => ({ locks: locks(), name: 'app', create, start, port: 3000 })],
  ];
  it.each(rows)('wrong options, naming %s', (named, options) => {
    const run = () => runStandby(options() as unknown as StandbyOptions);
    expect(run).toThrow(LockConfigError);
    expect(run).toThrow(named);
  });
});
