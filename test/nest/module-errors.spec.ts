import { Controller, Injectable, Scope, UseGuards, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockModule, LockConfigError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { start } from './boot.js';

const options = () => ({ store: memoryStore(), logger: false as const });
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => new Error('booted'),
    (error: unknown) => error,
  );

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
    const error = await reasonOf(start(Test.createTestingModule(metadata)));
    // In the first line.
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(/^.*@DistributedLock\(\) found, but DistributedLockModule\.forRoot\(\) is not imported/),
    );
  });

  it('with a method whose store is not registered', async () => {
    class Lost {
      @DistributedLock({ store: 'third' })
      async run() {}
    }
    const error = await reasonOf(
      start(Test.createTestingModule({ imports: [DistributedLockModule.forRoot(options())], providers: [Lost] })),
    );
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/Lost\.run: no store .*"third"/));
  });

  it('with a method for the default store, where only a named one is registered', async () => {
    @Injectable()
    class Defaulting {
      @DistributedLock()
      async run() {}
    }
    const imports = [DistributedLockModule.forRoot({ ...options(), name: 'only' })];
    const error = await reasonOf(start(Test.createTestingModule({ imports, providers: [Defaulting] })));
    expect(error).toHaveProperty('message', expect.stringMatching(/Defaulting\.run: no store .*"default"/));
  });

  it.each([
    ['default', undefined],
    ['second', 'second'],
  ])('with two stores under the name %s', async (said, name) => {
    const twice = [0, 1].map(() => DistributedLockModule.forRoot({ ...options(), name }));
    const error = await reasonOf(start(Test.createTestingModule({ imports: twice })));
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty(
      'message',
      `DistributedLockModule: forRoot() is imported twice for the store "${said}". It is global: import it once, in the root module. ` +
        'A second store needs a "name" of its own.',
    );
  });

  const async = (input: unknown) => DistributedLockModule.forRootAsync(input as never);
  const forRoot = (input: unknown) => DistributedLockModule.forRoot(input as never);
  const made = (more: object) => ({ useFactory: () => ({ ...options(), ...more }) });
  it.each<[string, () => DynamicModule, RegExp]>([
    ['no options', () => forRoot(undefined), /options/],
    ['no store', () => forRoot({}), /store/],
    ['something else as store', () => forRoot({ store: { mutex: {} } }), /store/],
    ['a namespace that is no text', () => forRoot({ ...options(), namespace: 5 }), /"namespace"/],
    ['a namespace with a control character', () => forRoot({ ...options(), namespace: 'a\n' }), /namespace/],
    ['a namespace with a stray brace', () => forRoot({ ...options(), namespace: 'a{' }), /namespace/],
    ['a namespace that leaves no room for a key', () => forRoot({ ...options(), namespace: 'x'.repeat(512) }), /namespace/],
    ['a negative shutdownTimeout', () => forRoot({ ...options(), shutdownTimeout: -1 }), /"shutdownTimeout"/],
    ['a slowWait of nothing', () => forRoot({ ...options(), slowWait: 0 }), /"slowWait" must be a whole number of at least 1, or Infinity/],
    ['unknown logKeys', () => forRoot({ ...options(), logKeys: 'some' }), /"logKeys" must be "full", "hash" or "none"/],
    ['an endless shutdownTimeout', () => forRoot({ ...options(), shutdownTimeout: Infinity }), /"shutdownTimeout"/],
    ['a shutdownTimeout in text', () => forRoot({ ...options(), shutdownTimeout: '5' }), /"shutdownTimeout"/],
    ['something else as logger', () => forRoot({ ...options(), logger: 'console' }), /"logger"/],
    ['half a logger', () => forRoot({ ...options(), logger: { warn: () => undefined } }), /"logger"/],
    ['an empty name', () => forRoot({ ...options(), name: '' }), /"name"/],
    ['a name that is no text', () => forRoot({ ...options(), name: 5 }), /"name"/],
    ['defaults that are none', () => forRoot({ ...options(), defaults: null }), /"defaults"/],
    ['an unknown option', () => forRoot({ ...options(), prefix: 'a' }), /"prefix"/],
    ['nothing async', () => async(undefined), /forRootAsync/],
    ['no factory', () => async({}), /exactly one of useFactory/],
    ['two factories', () => async({ useFactory: options, useClass: Stock }), /exactly one of useFactory/],
    ['a factory that is no function', () => async({ useFactory: 'options' }), /useFactory/],
    ['an unknown option of forRootAsync', () => async({ useFactory: options, injects: [] }), /"injects"/],
    ['an empty name of forRootAsync', () => async({ useFactory: options, name: '' }), /"name"/],
    ['a factory that makes nothing', () => async({ useFactory: () => undefined }), /options/],
    ['a factory that makes a wrong option', () => async(made({ shutdownTimeout: 1.5 })), /"shutdownTimeout"/],
    ['a factory that makes an unknown option', () => async(made({ ttl: 5 })), /"ttl"/],
    ['a factory that makes a wrong default', () => async(made({ defaults: { keyTimeout: 9 } })), /"defaults".*"keyTimeout"/],
    ['a factory that gives another name', () => async(made({ name: 'other' })), /"other"/],
  ])('with %s', async (_what, module, message) => {
    const error = await reasonOf((async () => start(Test.createTestingModule({ imports: [module()] })))());
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(message));
  });
});
