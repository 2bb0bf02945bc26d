// What the versions of this library have at a server in common: lib/stores/redis/WIRE-FORMAT.md. `UPDATE_GOLDEN=1 npx jest wire-format` writes the golden file.
import type { Redis } from 'ioredis';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';
import { back, LEASE, one, permits, play, playOperator, SCENES, TooSlow } from './wire-format.play.js';
import { ownerOf, restore } from './wire-format.text.js';

const setting = useRedis();
const CURRENT = 'wire-format.golden.txt';
const OPERATOR = 'what operators ask and are answered';

async function ears(): Promise<Redis> {
  const client = setting.client();
  await client.psubscribe('*');
  return client;
}

/** Again when this machine was too slow: what was to be seen has expired then. */
async function played(scene: string): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    await setting.redis.flushall();
    try {
      return await play(scene, { redis: setting.redis, ears: await ears(), connection: setting.server.connection });
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === 10) throw error;
    }
  }
}

/** Scene → its lines. */
function golden(file: string): Map<string, string[]> {
  const [, ...scenes] = readFileSync(join(__dirname, file), 'utf8').split(/^== /m);
  return new Map(
    scenes.map((text) => {
      const [title = '', ...lines] = text.trimEnd().split('\n');
      return [title, lines];
    }),
  );
}

function write(scene: string, lines: readonly string[]): void {
  const known = golden(CURRENT).set(scene, [...lines]);
  const titles = [...Object.keys(SCENES), OPERATOR];
  const head = readFileSync(join(__dirname, CURRENT), 'utf8').split(/^== /m)[0];
  const body = titles.map((title) => `== ${title}\n${(known.get(title) ?? []).join('\n').trimEnd()}\n`);
  writeFileSync(join(__dirname, CURRENT), head + body.join('\n'));
}

function expectGolden(scene: string, lines: readonly string[]): void {
  if (process.env.UPDATE_GOLDEN) write(scene, lines);
  expect(lines.join('\n').trimEnd()).toBe(golden(CURRENT).get(scene)?.join('\n'));
}

describe('what is written at Redis', () => {
  it.each(Object.keys(SCENES))('%s', async (scene) => expectGolden(scene, await played(scene)));

  it(`${OPERATOR}`, async () => {
    expectGolden(OPERATOR, await playOperator({ redis: setting.redis, ears: await ears(), connection: setting.server.connection }));
  });
});

const files = readdirSync(__dirname).filter((file) => /^wire-format.*\.golden\.txt$/.test(file));

describe.each(files)('this version goes on with what %s says', (file) => {
  const key = 'order:42';
  const queued = (owner: string, more: object = {}) => one(owner, { queue: true, ...more });

  /** The state after a step, as another version left it, whose inbox is open and hears these messages. */
  async function after(scene: string, step: string) {
    const lines = golden(file).get(scene)!;
    const from = lines.indexOf(`> ${step}`);
    const state = lines
      .slice(from + 1, lines.indexOf('', from) < 0 ? undefined : lines.indexOf('', from))
      .filter((line) => / → /.test(line));
    const inboxes = [1, 2].map((number) => `nestjs-distributed-lock:inbox:00000000-0000-4000-8000-00000000000${number}`);
    const first = 1000 * (Date.now() - 5000);
    await restore(setting.redis, state, { inboxes, tokens: Array.from({ length: 9 }, (_, index) => first + 10_000 * index) });
    const heard: string[] = [];
    const other = setting.client();
    await other.subscribe(inboxes[1]!);
    other.on('message', (_, message: string) => heard.push(message));
    const store = redisStore({ options: setting.server.connection }) as Required<LockStore>;
    setting.finally(() => store.close());
    return { store, heard, first };
  }

  it('a lease is renewed, released and checked; its waiter is offered the key, and confirms', async () => {
    const { store, heard, first } = await after('a mutex that two wait for', 'C queues, in a process without an inbox');
    const { mutex } = store;
    expect(await Promise.all(mutex.renew([{ key, owner: ownerOf('A'), ttl: 2 * LEASE }]))).toEqual(['renewed']);
    expect(await mutex.check({ key, owner: ownerOf('A') })).toMatchObject({ state: 'held', token: first });
    expect(await mutex.acquire(queued('D'))).toMatchObject({ granted: false, holder: ownerOf('A'), ahead: 2 });
    const [state] = await store.inspector.inspect([key]);
    expect(state).toMatchObject({ kind: 'mutex', holders: [{ owner: ownerOf('A') }], waiterCount: 3 });
    expect(state!.waiters.map(({ owner, isHeard }) => [owner, isHeard])).toEqual([
      [ownerOf('B'), true],
      [ownerOf('C'), true],
      [ownerOf('D'), true],
    ]);
    expect(state!.waiters[0]!.holding).toEqual([expect.stringContaining(' order:41')]);
    expect(await mutex.release(back('A'))).toBe('released');
    await eventually(() => heard.includes(`${ownerOf('B')}\n${key}`));
    const reply = await mutex.acquire(one('B'));
    expect(reply.granted && reply.token! > first).toBe(true);
    expect(await mutex.acquire(one('F'))).toMatchObject({ granted: false, holder: ownerOf('B') });
  });

  it('an offer stands: nobody but its waiter gets the key', async () => {
    const { store } = await after('a mutex that two wait for', 'A gives it back: B is offered it');
    expect(await store.mutex.acquire(one('F'))).toMatchObject({ granted: false, holder: ownerOf('B') });
    expect(await store.mutex.acquire(one('B'))).toMatchObject({ granted: true });
    expect(await store.mutex.release(back('B'))).toBe('released');
    expect(await store.mutex.acquire(queued('F'))).toMatchObject({ granted: false, holder: ownerOf('C') });
  });

  it('a minHold is kept, and its release may be repeated', async () => {
    const { store } = await after('a mutex with a minHold', 'A gives it back, to be kept');
    expect(await store.mutex.acquire(one('F'))).toMatchObject({ granted: false, holder: `kept:${ownerOf('A')}` });
    expect(await store.mutex.release(back('A', 30_000))).toBe('released');
    expect(await Promise.all(store.mutex.renew([{ key, owner: ownerOf('A'), ttl: LEASE }]))).toEqual(['lost']);
  });

  it('permits are counted, renewed and released, to the waiter that they suffice for', async () => {
    const { store, heard } = await after('a semaphore', 'C queues for two');
    const { semaphore } = store;
    expect(await semaphore.acquire(queued('D', permits(1, 5)))).toMatchObject({ granted: false, ahead: 1 });
    expect(await Promise.all(semaphore.renew(['A', 'B'].map((owner) => ({ key, owner: ownerOf(owner), ttl: LEASE }))))).toEqual([
      'renewed',
      'renewed',
    ]);
    const [state] = await store.inspector.inspect([key]);
    expect(state).toMatchObject({ kind: 'semaphore', permits: 5, holderCount: 2, waiterCount: 2 });
    expect(await semaphore.release(back('A'))).toBe('released');
    await eventually(() => heard.includes(`${ownerOf('C')}\n${key}`));
    expect(await semaphore.acquire(one('C', permits(2, 5)))).toMatchObject({ granted: true });
    expect(await semaphore.acquire(one('D', permits(1, 5)))).toMatchObject({ granted: true });
    expect(await semaphore.acquire(one('E', permits(2, 5)))).toMatchObject({ granted: false });
  });

  it('readers and writers exclude each other, a writer goes before readers', async () => {
    const { store, heard } = await after('a read/write lock', 'D queues to write');
    const { read, write } = store.readWriteLock;
    expect(await read.acquire(one('F', permits(1, Infinity, 1)))).toMatchObject({ granted: false });
    expect(await write.release(back('A'))).toBe('released');
    expect(await read.release(back('B'))).toBe('released');
    await eventually(() => heard.includes(`${ownerOf('D')}\n${key}`));
    expect(await write.acquire(one('D', permits(Infinity, Infinity)))).toMatchObject({ granted: true });
  });

  it('a latch remembers its operations and its waiters', async () => {
    const { store, heard } = await after('a count-down latch', 'a task is done');
    const { countDownLatch } = store;
    const change = (number: number) => ({ key: 'tasks', ttl: LEASE, operation: { line: 'line:0', number } });
    expect(await countDownLatch.countDown(change(2))).toBe(1);
    expect(await countDownLatch.look({ key: 'tasks', owner: ownerOf('F'), queue: false })).toMatchObject({ count: 1, round: 1 });
    expect(await countDownLatch.trySetCount({ ...change(3), count: 5 })).toBe(false);
    expect(await countDownLatch.countDown(change(4))).toBe(0);
    await eventually(() => heard.includes(ownerOf('A')));
  });
});
