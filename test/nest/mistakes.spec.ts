import '../support/virtual-time.js';
import type { DynamicModule, ModuleMetadata, Type } from '@nestjs/common';
import { Controller, Injectable, Scope, UseFilters, UseGuards, UseInterceptors, UsePipes } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from './boot.js';
import { classOf } from './class-of.js';
import { expectRefused } from './refusal.js';

const options = () => ({ store: memoryStore(), logger: false as const });

@Injectable()
class Stock {
  @DistributedLock()
  async reduce() {}
}
@Injectable({ scope: Scope.REQUEST })
class PerRequest extends Stock {}
@Controller()
class StockController extends Stock {}
@Injectable()
class StockGuard extends Stock {
  canActivate() {
    return true;
  }
}
@UseGuards(StockGuard)
@Controller()
class GuardedController {}

describe('an app that is put together wrongly does not boot', () => {
  it.each<[string, ModuleMetadata]>([
    ['a provider', { providers: [Stock] }],
    ['a request-scoped provider', { providers: [PerRequest] }],
    ['a controller', { controllers: [StockController] }],
    ['a guard', { controllers: [GuardedController] }],
  ])('without forRoot, and says so, with a locked method in %s', async (_what, metadata) => {
    const inTheFirstLine = /^.*@DistributedLock\(\) found, but DistributedLockModule\.forRoot\(\) is not imported/;
    await expect(start(Test.createTestingModule(metadata))).rejects.toThrow(inTheFirstLine);
  });

  it.each([
    ['is not registered', undefined, 'third'],
    ['is the default one, where only a named one is registered', 'only', 'default'],
  ])('with a method whose store %s', async (_what, registered, wanted) => {
    const Lost = classOf('Lost', { run: DistributedLock({ store: wanted }) });
    const imports = [DistributedLockModule.forRoot({ ...options(), name: registered })];
    await expectRefused(start(Test.createTestingModule({ imports, providers: [Lost] })), `Lost\\.run: no store .*"${wanted}"`);
  });

  it.each([
    ['guard', UseGuards],
    ['pipe', UsePipes],
    ['interceptor', UseInterceptors],
    ['filter', UseFilters],
  ])('with a wrong lock in a %s that is bound by its class', async (_what, bind: (type: Type) => ClassDecorator & MethodDecorator) => {
    @Injectable()
    class Lost {
      @DistributedLock({ store: 'third' })
      async canActivate() {}
      async transform() {}
      async intercept() {}
      async catch() {}
    }
    @Controller()
    class Bound {
      @bind(Lost)
      handle() {}
    }
    const imports = [DistributedLockModule.forRoot(options())];
    await expectRefused(start(Test.createTestingModule({ imports, controllers: [Bound] })), /Lost\.canActivate: no store .*"third"/);
  });

  it('with a method whose key has no name: a symbol without a description', async () => {
    const run = Symbol();
    const Nameless = classOf('Nameless', { [run]: DistributedLock() });
    await expectRefused(boot({ providers: [Nameless] }), /Nameless\.Symbol\(\): .* give a "value"\. \[LOCK_CONFIG_KEY\]$/);
    await boot({ providers: [classOf('Named', { [run]: DistributedLock({ value: 'named' }) })] });
  });

  it.each([
    ['default', undefined],
    ['second', 'second'],
  ])('with two stores under the name %s', async (said, name) => {
    const twice = [0, 1].map(() => DistributedLockModule.forRoot({ ...options(), name }));
    await expect(start(Test.createTestingModule({ imports: twice }))).rejects.toMatchObject({
      name: 'LockConfigError',
      message:
        `DistributedLockModule: forRoot() is imported twice for the store "${said}". It is global: import it once, in the root module. ` +
        'A second store needs a "name" of its own. [LOCK_CONFIG_MODULE]',
    });
  });

  const async = (input: unknown) => DistributedLockModule.forRootAsync(input as never);
  const forFeature = DistributedLockModule.forFeature as unknown as (input: unknown) => DynamicModule;
  const forRoot = (input: unknown) => DistributedLockModule.forRoot(input as never);
  const made = (more: object) => ({ useFactory: () => ({ ...options(), ...more }) });
  it.each<[string, () => DynamicModule, RegExp]>([
    ['no options', () => forRoot(undefined), /options/],
    ['no store', () => forRoot({}), /store/],
    ['a store in place of the options', () => forRoot(memoryStore()), /forRoot: a store is passed as \{ store: … \}/],
    ['the options of a store', () => forRoot({ url: 'redis://a' }), /"url" is an option of a store: \{ store: redisStore\(\{ url \}\) \}/],
    ['a client', () => forRoot({ client: {} }), /"client" is an option of a store: \{ store: redisStore\(\{ client \}\) \}/],
    ...['redis', 'redisOptions', 'host', 'port', 'connection'].map((name): [string, () => DynamicModule, RegExp] => [
      `${name}, as other libraries have it`,
      () => forRoot({ [name]: 'redis://a' }),
      RegExp(`"${name}" is an option of a store: \\{ store: redisStore\\(\\{ url \\} \\| \\{ client \\} \\| \\{ options: .* \\}\\) \\}`),
    ]),
    ['a factory that makes redisOptions', () => async(made({ redisOptions: {} })), /"redisOptions" is an option of a store/],
    [
      'forFeature',
      () => forFeature([]),
      /forFeature does not exist\. forRoot\(\{ store \}\) is global: import it once, in the root module/,
    ],
    ['an empty name', () => forRoot({ ...options(), name: '' }), /"name"/],
    ['a name that is no text', () => forRoot({ ...options(), name: 5 }), /"name"/],
    ['nothing async', () => async(undefined), /forRootAsync/],
    ['no factory', () => async({}), /exactly one of useFactory/],
    ['two factories', () => async({ useFactory: options, useClass: Stock }), /exactly one of useFactory/],
    ['a factory that is no function', () => async({ useFactory: 'options' }), /useFactory/],
    ['an unknown option of forRootAsync', () => async({ useFactory: options, injects: [] }), /"injects"/],
    ['an empty name of forRootAsync', () => async({ useFactory: options, name: '' }), /"name"/],
    [
      'a factory that makes nothing',
      () => async({ useFactory: () => undefined }),
      /forRootAsync: the factory must return .*\{ store: … \}/,
    ],
    ['a factory that makes a store', () => async({ useFactory: () => memoryStore() }), /a store is passed as \{ store: … \}/],
    ['a factory that makes a wrong option', () => async(made({ shutdownTimeout: 1.5 })), /"shutdownTimeout"/],
    ['a factory that makes an unknown option', () => async(made({ ttl: 5 })), /"ttl"/],
    ['a factory that makes a wrong default', () => async(made({ defaults: { keyTimeout: 9 } })), /"defaults".*"keyTimeout"/],
    ['a factory that gives another name', () => async(made({ name: 'other' })), /"other"/],
  ])('with %s', async (_what, module, message) => {
    await expectRefused(async () => start(Test.createTestingModule({ imports: [module()] })), message);
  });
});

it('a key function that throws is a LockConfigError that names the method, once, and has what was thrown as its cause', async () => {
  class Shop {
    @DistributedLock<Shop['buy']>({ key: (order) => order!.id })
    async buy(_order?: { id: string }) {}
  }
  const shop = (await boot({ providers: [Shop] })).get(Shop);
  await expect(shop.buy()).rejects.toMatchObject({
    name: 'LockConfigError',
    message: expect.stringMatching(/^@DistributedLock\(\) on Shop\.buy: key threw TypeError: Cannot read properties of undefined/),
    cause: expect.any(TypeError),
  });
});

it('the class of a locked method is checked at boot without its getters being triggered', async () => {
  const seen: string[] = [];
  class Shop {
    get costly(): string {
      seen.push('prototype');
      throw new Error('too early');
    }
    @DistributedLock()
    async buy() {
      return 'bought';
    }
  }
  class Closed extends Shop {}
  Object.defineProperty(Closed.prototype, 'buy', { get: () => seen.push('override') });
  const plain = Object.defineProperty(new Shop(), 'own', { enumerable: true, get: () => seen.push('own') });
  const { app } = await boot({ providers: [Shop, Closed, { provide: 'plain', useValue: plain }] });
  expect(seen).toEqual([]);
  expect(await app.get<Shop>('plain').buy()).toBe('bought');
});
