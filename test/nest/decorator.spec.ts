import '../support/virtual-time.js';
import { Injectable, SetMetadata } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { of } from 'rxjs';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { begunByThen } from '../support/begun-by-then.js';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { expectRefused } from './refusal.js';

/** Hands out what a test puts in. */
@Injectable()
class Post {
  answer: (...args: unknown[]) => unknown = (_post, name) => name;

  @DistributedLock()
  async deliver(...args: unknown[]) {
    return this.answer(this, ...args);
  }
  @DistributedLock()
  hand() {
    return this.answer() as Promise<unknown>;
  }
  async read() {}
}

async function bootPost(answer?: Post['answer']) {
  const booted = await boot({ providers: [Post] });
  const post = Object.assign(booted.get(Post), answer && { answer });
  return { ...booted, post };
}

describe('a method with @DistributedLock', () => {
  it('keeps its name, its length, its metadata and marks that other decorators leave on the function', () => {
    const route = { method: 'GET' };
    const mark: MethodDecorator = (_target, _name, descriptor) => void Object.assign(descriptor.value as object, { mark: 'here' });
    class Shop {
      @SetMetadata('above', 1)
      @DistributedLock()
      @SetMetadata('below', route)
      @mark
      async buy(_sku: string, _units: number) {}
    }
    const { buy } = Shop.prototype;
    expect([buy.name, buy.length]).toEqual(['buy', 2]);
    expect(buy).toHaveProperty('mark', 'here');
    expect(Reflect.getMetadata('above', buy)).toBe(1);
    expect(Reflect.getMetadata('below', buy)).toBe(route);
    expect(Reflect.getMetadata('design:paramtypes', Shop.prototype, 'buy')).toEqual([String, Number]);
    expect(Object.getOwnPropertyDescriptor(Shop.prototype, 'buy')).toMatchObject({ enumerable: false, writable: true, configurable: true });
  });

  it('has the lease of the call in work that begins with its `then`, as a query of Prisma', async () => {
    const { post } = await bootPost(() => begunByThen(() => currentLease()?.key));
    expect(await post.hand()).toBe('Post.hand-locks');
  });

  const things = [undefined, null, 0, '', NaN, false, Symbol.iterator, { a: 1 }, [of(1)], new Error('as a value'), () => 'a function'];

  it('resolves to what the body returned and rejects with what it threw, as it is', async () => {
    const { post, isTaken } = await bootPost();
    for (const thing of things) {
      post.answer = () => thing;
      await expect(post.deliver()).resolves.toBe(thing);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- bodies do
      post.answer = () => Promise.reject(thing);
      await expect(post.deliver()).rejects.toBe(thing);
    }
    expect(await isTaken('Post.deliver-locks')).toBe(false);
  });

  it('rejects with the same error where a body throws before it has a promise', async () => {
    const error = new Error('too early');
    const { post, isTaken } = await bootPost(() => {
      throw error;
    });
    const call = post.hand();
    expect(call).toBeInstanceOf(Promise);
    await expect(call).rejects.toBe(error);
    expect(await isTaken('Post.hand-locks')).toBe(false);
  });

  it('waits for any thenable', async () => {
    let finish!: (value: string) => void;
    const { post, isTaken } = await bootPost(() => ({ then: (resolve: typeof finish) => (finish = resolve) }));
    const call = post.hand();
    await eventually(() => finish !== undefined);
    expect(await isTaken('Post.hand-locks')).toBe(true);
    finish('done');
    expect(await call).toBe('done');
  });

  it.each([
    ['nothing to wait for', () => 5, /Post\.hand.*has run, and did not return a Promise/],
    ['an Observable', () => of(1), /Post\.hand.*has run, and returned an Observable.*returns: 'observable'/],
    ['an async iterable', async function* () {}, /Post\.hand.*has run, and returned an async iterable.*returns: 'iterable'/],
  ])('rejects at the call where it returned %s and nothing had said so before', async (_what, answer, message) => {
    const { post, isTaken } = await bootPost(answer);
    await expectRefused(post.hand(), message);
    expect(await isTaken('Post.hand-locks')).toBe(false);
  });

  it('is called with its arguments and on its instance; other methods are not locked', async () => {
    const { post, acquired } = await bootPost((...args) => args);
    await post.read();
    expect(acquired).toEqual([]);
    const word = {};
    const [self, ...words] = (await post.deliver(word, undefined, null, 4)) as unknown[];
    expect(self).toBe(post);
    expect(words).toEqual([word, undefined, null, 4]);
    expect(words[0]).toBe(word);
    expect(acquired).toEqual(['Post.deliver-locks']);
  });

  it('knows what a stacked method returns from the decorator below', async () => {
    class Shop {
      @DistributedLock({ value: 'house' })
      @DistributedLock({ value: 'room' })
      async *rooms() {
        yield 1;
      }
    }
    const { get, acquired, isTaken } = await boot({ providers: [Shop] });
    for await (const room of get(Shop).rooms()) expect(room).toBe(1);
    expect(acquired).toEqual(['house-locks', 'room-locks']);
    expect(await Promise.all(acquired.map(isTaken))).toEqual([false, false]);
  });

  it('can be taken off its instance and called on it again', async () => {
    const { post, acquired } = await bootPost();
    const { deliver } = post;
    expect([await deliver.call(post, 'called'), await deliver.bind(post)('bound')]).toEqual(['called', 'bound']);
    expect(acquired).toHaveLength(2);
  });

  const proxied = async (get: (field: unknown, target: Post) => unknown) => {
    const made = () => new Proxy(new Post(), { get: (target, name) => get(Reflect.get(target, name), target) });
    const { app } = await boot({ providers: [{ provide: 'proxy', useFactory: made }] });
    return app.get<Post>('proxy').deliver('proxied');
  };

  it('is locked through a proxy that a factory made and that leaves methods unbound', async () => {
    expect(await proxied((field) => field)).toBe('proxied');
  });

  it.each<[string, (post: Post) => Promise<unknown>, RegExp]>([
    ['without its instance', ({ deliver }) => deliver('loose'), /Post\.deliver: .*called without its instance/],
    [
      'on an instance made with new',
      ({ answer }) => Object.assign(new Post(), { answer }).deliver(),
      /Post\.deliver: .*not made by Nest.*instead of calling `new`/,
    ],
    [
      'on a copy without its prototype’s injections',
      ({ answer }) => Object.assign(Object.create(Post.prototype) as Post, { answer }).deliver(),
      /Post\.deliver: .*not made by Nest/,
    ],
    [
      'on the target of a proxy that a factory made, as the proxy binds its methods',
      () => proxied((field, target) => (typeof field === 'function' ? field.bind(target) : field)),
      /Post\.deliver: .*not made by Nest.*A proxy that a factory makes must not bind methods to its target/,
    ],
  ])('rejects, and does not run, where it is called %s', async (_what, call, message) => {
    const body = jest.fn();
    const { post, app } = await bootPost(body);
    // Once the boot is over, the app is not searched for an unknown instance.
    const search = jest.spyOn(app.get(DiscoveryService, { strict: false }), 'getProviders');
    await expectRefused(call(post), message);
    expect([body.mock.calls, search.mock.calls]).toEqual([[], []]);
  });
});
