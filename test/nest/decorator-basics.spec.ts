import { Injectable, SetMetadata } from '@nestjs/common';
import { of } from 'rxjs';
import { LockConfigError } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { Gate } from './gate.js';
import { bootKind, EXCLUSIVE, KINDS, type Kind } from './kinds.js';
import { Tally } from './tally.js';

const PATIENT = { retryCount: 0, retryInterval: 2 };

/** Hands out what a test puts in. */
function postWith({ lock }: Kind) {
  @Injectable()
  class Post {
    answer: () => unknown = () => undefined;

    @lock()
    async deliver() {
      return this.answer();
    }

    @lock()
    hand() {
      return this.answer() as Promise<unknown>;
    }
  }
  return Post;
}

describe.each(EXCLUSIVE)('a method with $name', (kind) => {
  const { lock } = kind;

  it('runs for one caller at a time, where without it updates are lost', async () => {
    @Injectable()
    class Till {
      readonly open = new Tally();
      readonly locked = new Tally();

      ringOpen() {
        return this.open.add();
      }
      @lock(PATIENT)
      ring() {
        return this.locked.add();
      }
    }
    const till = (await bootKind(kind, { providers: [Till] })).get(Till);
    const results = await Promise.all(Array.from({ length: 20 }, () => Promise.all([till.ring(), till.ringOpen()])));
    expect(till.open.value).toBeLessThan(20);
    expect(till.locked).toMatchObject({ value: 20, most: 1 });
    expect(new Set(results.map(([rung]) => rung)).size).toBe(20);
  });
});

describe.each(KINDS)('a method with $name', (kind) => {
  const { lock } = kind;
  const Post = postWith(kind);

  it('holds its key while it runs, and no longer', async () => {
    const { get, isTaken } = await bootKind(kind, { providers: [Post] });
    const gate = new Gate();
    get(Post).answer = () => gate.pass();
    const call = get(Post).deliver();
    await eventually(() => gate.arrived === 1);
    expect(await isTaken('Post.deliver-locks')).toBe(true);
    gate.open();
    await call;
    expect(await isTaken('Post.deliver-locks')).toBe(false);
  });

  it('does not start before it has its key', async () => {
    const { get, occupy, waiting } = await bootKind(kind, { providers: [Post] });
    const lease = await occupy('Post.deliver-locks');
    let started = 0;
    get(Post).answer = () => started++;
    const call = get(Post).deliver();
    await eventually(() => expect(waiting).toEqual(['Post.deliver-locks']));
    expect(started).toBe(0);
    await lease.release();
    await call;
    expect(started).toBe(1);
  });

  it('keeps its name, its length and its metadata', () => {
    const route = { method: 'GET' };
    class Shop {
      @SetMetadata('above', 1)
      @lock()
      @SetMetadata('below', route)
      async buy(_sku: string, _units: number) {}
    }
    const { buy } = Shop.prototype;
    expect([buy.name, buy.length]).toEqual(['buy', 2]);
    expect(Reflect.getMetadata('above', buy)).toBe(1);
    expect(Reflect.getMetadata('below', buy)).toBe(route);
    expect(Reflect.getMetadata('design:paramtypes', Shop.prototype, 'buy')).toEqual([String, Number]);
    expect(Object.getOwnPropertyDescriptor(Shop.prototype, 'buy')).toMatchObject({ enumerable: false, writable: true, configurable: true });
  });

  it('keeps marks that other decorators leave on the function', () => {
    const mark: MethodDecorator = (_target, _name, descriptor) => void Object.assign(descriptor.value as object, { mark: 'here' });
    class Shop {
      @lock()
      @mark
      async buy() {}
    }
    expect(Shop.prototype.buy).toHaveProperty('mark', 'here');
  });

  const things = [undefined, null, 0, '', NaN, false, Symbol.iterator, { a: 1 }, [of(1)], new Error('as a value'), () => 'a function'];

  it.each(things.map((value) => [value]))('resolves to what the body returned, as it is: %p', async (value) => {
    const post = (await bootKind(kind, { providers: [Post] })).get(Post);
    post.answer = () => value;
    expect(await post.deliver()).toBe(value);
  });

  it.each(things.map((value) => [value]))('rejects with what the body threw, as it is: %p', async (reason) => {
    const { get, isTaken } = await bootKind(kind, { providers: [Post] });
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- bodies do
    get(Post).answer = () => Promise.reject(reason);
    const outcome = await get(Post)
      .deliver()
      .then(fail, (error: unknown) => ({ error }));
    expect(outcome.error).toBe(reason);
    expect(await isTaken('Post.deliver-locks')).toBe(false);
  });

  it('rejects with the same error where a body throws before it has a promise', async () => {
    const { get, isTaken } = await bootKind(kind, { providers: [Post] });
    const error = new Error('too early');
    get(Post).answer = () => {
      throw error;
    };
    const call = get(Post).hand();
    expect(call).toBeInstanceOf(Promise);
    expect(await call.catch((reason: unknown) => reason)).toBe(error);
    expect(await isTaken('Post.hand-locks')).toBe(false);
  });

  it('waits for any thenable', async () => {
    const { get, isTaken } = await bootKind(kind, { providers: [Post] });
    let finish!: (value: string) => void;
    get(Post).answer = () => ({ then: (resolve: typeof finish) => (finish = resolve) });
    const call = get(Post).hand();
    await eventually(() => finish !== undefined);
    expect(await isTaken('Post.hand-locks')).toBe(true);
    finish('done');
    expect(await call).toBe('done');
  });

  it.each([
    ['nothing to wait for', () => 5, /Post\.hand.*did not return a Promise/],
    ['an Observable', () => of(1), /Post\.hand.*returned an Observable.*returns: 'observable'/],
    ['an async iterable', async function* () {}, /Post\.hand.*returned an async iterable.*returns: 'iterable'/],
  ])('rejects at the call where it returned %s and nothing had told before', async (_what, answer, message) => {
    const { get, isTaken } = await bootKind(kind, { providers: [Post] });
    get(Post).answer = answer;
    const error = await get(Post)
      .hand()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(message));
    expect(await isTaken('Post.hand-locks')).toBe(false);
  });

  it('is called with its arguments and on its instance', async () => {
    class Echo {
      @lock()
      async say(...words: unknown[]) {
        return [this, ...words];
      }
    }
    const echo = (await bootKind(kind, { providers: [Echo] })).get(Echo);
    const word = {};
    const [self, ...words] = await echo.say(word, undefined, null, 4);
    expect(self).toBe(echo);
    expect(words).toEqual([word, undefined, null, 4]);
    expect(words[0]).toBe(word);
  });
});

function fail(value: unknown): never {
  throw new Error(`resolved to ${String(value)}`);
}
