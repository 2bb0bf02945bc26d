import { Logger, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Agent, get } from 'node:http';
import { currentLease, LockConfigError, type LockStore, type Locks } from 'nestjs-distributed-lock';
import { runStandby } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { ask, candidate, type Diary, lose, openLocks, serverOf, type Overrides } from './standby-apps.js';

@Module({})
class Nothing {}
beforeAll(() => Logger.overrideLogger(false));

const ENDED = ['destroy', 'shutdown'];
const STARTED = ['start', 'init', 'bootstrap', 'listen'];
const steps = (number: number, names: string[]) => names.map((name) => `${name} ${number}`);
const failure = new Error('it cannot');
const fail = () => Promise.reject(failure);

let locks: Locks;
beforeEach(() => (locks = openLocks()));

const isFree = async () => {
  const lease = await locks.tryAcquire('app-leader');
  return lease !== null && lease.release();
};
const listens = (diary: Diary, times = 1) =>
  eventually(() => diary.lines.filter((line) => line.startsWith('listen')).length === times && diary.server.listening);

/** A candidate that leads. */
async function leader(overrides: Overrides = {}) {
  const first = candidate(locks, overrides);
  await listens(first.diary);
  return first;
}

/** A second one, in another process as far as the locks can tell; it is in line. */
async function second() {
  const others = openLocks(locks.store);
  const waits = new Promise((resolve) => others.on('waiting', resolve));
  const next = candidate(others);
  await waits;
  return { ...next, others };
}

/** A candidate whose start waits at a gate before it listens, and at another one after that. */
async function starting() {
  const [opening, rest] = [new Gate(), new Gate()];
  const { diary } = candidate(locks, {
    async start(app, term) {
      diary.terms.push(term);
      if (diary.terms.length === 1) await opening.pass();
      await app.listen(0, '127.0.0.1');
      diary.lines.push(`listen ${diary.apps.length}`);
      if (diary.terms.length === 1) await rest.pass();
    },
  });
  await eventually(() => opening.arrived === 1);
  return { diary, opening, rest, server: diary.server };
}

describe('a standby', () => {
  it('is preloaded while another leads: container built and prepared, nothing begun', async () => {
    const first = await leader();
    const { diary, standby } = await second();
    expect(diary.lines).toEqual(steps(1, ['create', 'prepare']));
    expect([first.standby.isLeader(), standby.isLeader(), diary.server.listening]).toEqual([true, false, false]);
    expect(await ask(first.diary.app)).toBe('fast');
  });

  it('starts once elected, with its app and its term, in whose call chain all that begins runs', async () => {
    let inside: unknown;
    const { diary } = candidate(locks, {
      start(_app, term) {
        diary.terms.push(term);
        inside = currentLease();
      },
    });
    await eventually(() => diary.terms.length === 1);
    expect([inside, diary.term.key, diary.term.remaining() > 0]).toEqual([diary.term, 'app-leader', true]);
  });

  it('stops by stop(): the app closes, its requests are answered, and only then the next one leads', async () => {
    const { diary, standby } = await leader();
    const next = await second();
    const slow = ask(diary.app, 'slow');
    await eventually(() => diary.requests.arrived === 1);
    const stopped = standby.stop();
    expect([diary.server.listening, standby.isLeader()]).toEqual([false, false]);
    await eventually(() => diary.lines.includes('destroy 1'));
    expect([diary.term.remaining() > 0, next.diary.terms.length]).toEqual([true, 0]);
    diary.requests.open();
    expect(await slow).toBe('slow');
    await stopped;
    expect(diary.lines).toEqual(steps(1, ['create', 'prepare', ...STARTED, ...ENDED]));
    await listens(next.diary);
    expect(next.diary.term.fencingToken!).toBeGreaterThan(diary.term.fencingToken!);
  });

  it('that was never elected stops at once, closes what it has built, and leaves no queue entry behind', async () => {
    const first = await leader();
    const { standby, diary } = await second();
    await standby.stop();
    expect(diary.lines).toEqual(steps(1, ['create', 'prepare', ...ENDED]));
    await first.standby.stop();
    expect(await isFree()).toBe(true);
  });

  it('whose term is lost closes, builds the next container, and only then stands again', async () => {
    const building = new Gate();
    const { diary, standby } = candidate(locks, {
      async prepare() {
        if (diary.apps.length === 2) await building.pass();
        diary.lines.push(`prepare ${diary.apps.length}`);
      },
    });
    await listens(diary);
    const [lost, app] = [diary.term, diary.app];
    await lose(locks, lost);
    expect(serverOf(app).listening).toBe(false);
    await eventually(() => building.arrived === 1);
    const stranger = await locks.tryAcquire('app-leader', { keyTimeout: 60_000 });
    expect(stranger).not.toBeNull();
    building.open();
    await eventually(() => diary.lines.includes('prepare 2'));
    await stranger!.release();
    await listens(diary, 2);
    const once = steps(1, ['create', 'prepare', ...STARTED, ...ENDED]);
    expect(diary.lines).toEqual([...once, ...steps(2, ['create', 'prepare', ...STARTED])]);
    expect([standby.isLeader(), diary.term.fencingToken! > lost.fencingToken!]).toEqual([true, true]);
  });

  it('stops listening before the hooks of the shutdown, however long they take', async () => {
    const hook = new Gate();
    const { diary } = await leader();
    diary.onDestroy = () => hook.pass();
    const { app } = diary;
    await lose(locks, diary.term);
    await eventually(() => hook.arrived === 1);
    await expect(ask(app)).rejects.toThrow();
    hook.open();
    await listens(diary, 2);
  });

  it('ends by its signal, also by one that has aborted before', async () => {
    const caller = new AbortController();
    const { diary, standby } = await leader({ signal: caller.signal });
    caller.abort();
    expect(await standby.done).toBeUndefined();
    expect(diary.lines.slice(-2)).toEqual(steps(1, ENDED));
    const late = candidate(locks, { signal: caller.signal });
    expect([await late.standby.done, late.diary.lines]).toEqual([undefined, []]);
  });

  it('that is stopped while its container is being built closes it, and does not stand', async () => {
    const building = new Gate();
    const { diary, standby } = candidate(locks, { prepare: () => building.pass() });
    await eventually(() => building.arrived === 1);
    const stopped = standby.stop();
    building.open();
    await stopped;
    expect([diary.lines, diary.terms]).toEqual([steps(1, ['create', ...ENDED]), []]);
  });

  it('that loses its term while it starts closes as soon as the start has ended', async () => {
    const { diary, opening, rest, server } = await starting();
    rest.open();
    await lose(locks, diary.term);
    expect(diary.lines).not.toContain('destroy 1');
    opening.open();
    await listens(diary, 2);
    const first = diary.lines.filter((line) => line.endsWith('1'));
    expect(first).toEqual(steps(1, ['create', 'prepare', 'init', 'bootstrap', 'listen', ...ENDED]));
    expect(server.listening).toBe(false);
  });

  it('that loses its term while it starts does not go on to listen, however long the rest of the start takes', async () => {
    const { diary, opening, rest, server } = await starting();
    await lose(locks, diary.term);
    opening.open();
    await eventually(() => rest.arrived === 1);
    await eventually(() => !server.listening).finally(() => rest.open());
    await eventually(() => diary.lines.includes('shutdown 1'));
  });
});

describe('a standby that cannot go on', () => {
  const throwing = () => {
    throw failure;
  };
  // Nest 10 and 11 reject with what a hook of the shutdown throws, Nest 12 logs it.
  const cannotClose = (app: INestApplication, error = failure) =>
    void Object.defineProperty(app, 'close', { value: () => Promise.reject(error), configurable: true });

  it.each<[string, Overrides, string | undefined]>([
    ['create fails', { create: fail }, undefined],
    ['prepare fails', { prepare: fail }, 'shutdown 1'],
    ['start rejects', { start: fail }, 'shutdown 1'],
    ['start throws', { start: throwing }, 'shutdown 1'],
    ['start fails, and closing as well', { start: fail, prepare: (app) => cannotClose(app, new Error('nor close')) }, 'create 1'],
  ])('rejects with the first error where %s: what it has built is closed, and nobody leads', async (_what, overrides, last) => {
    const { standby, diary } = candidate(locks, overrides);
    await expect(standby.done).rejects.toBe(failure);
    expect([diary.lines.at(-1), await isFree(), standby.isLeader()]).toEqual([last, true, false]);
  });

  it.each<[string, (first: ReturnType<typeof candidate>) => Promise<unknown>]>([
    ['by stop()', ({ standby }) => standby.stop()],
    ['after the loss of its term', ({ standby, diary }) => lose(locks, diary.term).then(() => standby.done)],
  ])('rejects with what closing the app threw %s, does not listen any more, and builds no further container', async (_when, end) => {
    const first = await leader({ prepare: (app) => cannotClose(app) });
    await expect(end(first)).rejects.toBe(failure);
    expect([first.diary.server.listening, first.diary.apps.length, await isFree()]).toEqual([false, 1, true]);
  });

  it('cuts connections that outlast the shutdownTimeout, and goes on', async () => {
    const { standby, diary } = await leader({ shutdownTimeout: 3_000 });
    const slow = ask(diary.app, 'slow').catch((error: Error) => error.message);
    await eventually(() => diary.requests.arrived === 1);
    await standby.stop();
    expect([await slow, diary.lines.at(-1)]).toEqual(['fetch failed', 'shutdown 1']);
    diary.requests.open();
  });

  it('rejects when the app does not close for all that, and gives the term back', async () => {
    const hook = new Gate();
    const { standby, diary } = await leader({ shutdownTimeout: 50 });
    diary.onDestroy = () => hook.pass();
    await expect(standby.stop()).rejects.toThrow('has not closed');
    expect(await isFree()).toBe(true);
    hook.open();
  });

  it('rejects when its locks are closed under it, whether it leads or not', async () => {
    const { standby, diary } = await leader();
    const next = await second();
    await next.others.close();
    await expect(next.standby.done).rejects.toHaveProperty('name', 'LockAbortedError');
    expect(next.diary.lines.at(-1)).toBe('shutdown 1');
    await locks.close();
    await expect(standby.done).rejects.toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    expect([diary.apps.length, diary.lines.at(-1)]).toEqual([1, 'shutdown 1']);
  });

  it('rejects where no retry at the store helps, and closes what it has built', async () => {
    const store = memoryStore();
    const acquire = () => Promise.reject(new Error('NOAUTH'));
    const refusing = { ...store, mutex: Object.assign(Object.create(store.mutex) as LockStore['mutex'], { acquire }) };
    const { standby, diary } = candidate(openLocks(refusing));
    await expect(standby.done).rejects.toMatchObject({ name: 'StoreError' });
    expect(diary.lines.at(-1)).toBe('shutdown 1');
  });

  it('refuses a container that has begun already, as createApplicationContext makes them', async () => {
    const create = () => NestFactory.createApplicationContext(Nothing, { logger: false, abortOnError: false });
    const standby = runStandby({ locks, name: 'app', create, start: () => undefined });
    await expect(standby.done).rejects.toThrow(LockConfigError);
    expect(await isFree()).toBe(true);
  });
});

describe('the end of an app', () => {
  it('is not held up by a connection that is kept alive after its last answer', async () => {
    const { standby, diary } = await leader({ shutdownTimeout: 600_000 });
    diary.server.keepAliveTimeout = 600_000;
    const agent = new Agent({ keepAlive: true });
    const url = `${await diary.app.getUrl()}/slow`;
    const answered = new Promise((resolve) => get(url, { agent }, (response) => response.resume().on('end', resolve)));
    await eventually(() => diary.requests.arrived === 1);
    const close = jest.spyOn(diary.server, 'close');
    const stopped = standby.stop();
    await eventually(() => close.mock.calls.length === 2); // Nest's own, which closes idle connections, has been
    diary.requests.open();
    await answered;
    await stopped;
    agent.destroy();
  });

  it.each([
    ['Fastify', [new FastifyAdapter()]],
    ['no server at all', []],
  ])('is the same with %s', async (_kind, adapter) => {
    const create = () => NestFactory.create(Nothing, ...(adapter as [FastifyAdapter]), { logger: false, abortOnError: false });
    const hasServer = adapter.length > 0;
    const begun = new Gate();
    let server!: ReturnType<typeof serverOf>;
    const start = async (app: INestApplication) => {
      server = serverOf(app);
      await (hasServer ? app.listen(0, '127.0.0.1') : app.init());
      begun.arrived++;
    };
    const standby = runStandby<INestApplication>({ locks, name: 'app', create, start });
    await eventually(() => begun.arrived === 1);
    expect(server.listening).toBe(hasServer);
    const stopped = standby.stop();
    expect(server.listening).toBe(false);
    await stopped;
    expect(await isFree()).toBe(true);
  });
});
