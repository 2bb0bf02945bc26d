// A decorated handler locks by its own join point: binding the interceptor besides, anywhere, must not lock it twice.
import { Controller, Get, UseInterceptors, type INestApplication, type Provider } from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { currentLease, DistributedLockInterceptor } from 'nestjs-distributed-lock';
import { ADAPTERS, serve, type Adapter } from './http-app.js';
import { lockAmong, place } from './place.js';

// With `reentrant: false` a handler that is locked twice waits for itself, in vain.
const ONCE = { value: 'once', reentrant: false, waitTimeout: 0, keyTimeout: 60_000 };
const key = () => currentLease()?.key ?? 'unlocked';

interface Binding {
  controller: new () => object;
  providers?: Provider[];
  configure?: (app: INestApplication) => void;
}

async function isLockedOnce(adapter: Adapter, { controller, providers = [], configure }: Binding) {
  const { ask, acquired, isTaken } = await serve(adapter, { controllers: [controller], providers }, {}, configure);
  const { status, body } = await ask('once');
  expect([status, body]).toEqual([200, { key: 'once-locks' }]);
  expect((await ask('free')).body).toEqual({ key: 'unlocked' });
  expect(acquired).toEqual(['once-locks']);
  expect(await isTaken('once-locks')).toBe(false);
}

place('HTTP', 'a handler with @UseInterceptors(DistributedLockInterceptor) besides: locked once', (order) => {
  @Controller()
  class HandlerBound {
    @lockAmong(order, ONCE, UseInterceptors(DistributedLockInterceptor), Get('once'))
    async once() {
      return { key: key() };
    }
    @UseInterceptors(DistributedLockInterceptor)
    @Get('free')
    async free() {
      return { key: key() };
    }
  }

  it.each(ADAPTERS)('is locked once (%s)', (adapter) => isLockedOnce(adapter, { controller: HandlerBound }));
});

place('HTTP', 'DistributedLockInterceptor bound to the controller or the app besides: locked once', (order) => {
  @Controller()
  class Plain {
    @lockAmong(order, ONCE, Get('once'))
    async once() {
      return { key: key() };
    }
    @Get('free')
    async free() {
      return { key: key() };
    }
  }
  @UseInterceptors(DistributedLockInterceptor)
  @Controller()
  class ControllerBound extends Plain {}

  const bindings: [string, Binding][] = [
    ['the controller', { controller: ControllerBound }],
    ['APP_INTERCEPTOR', { controller: Plain, providers: [{ provide: APP_INTERCEPTOR, useClass: DistributedLockInterceptor }] }],
    [
      'APP_INTERCEPTOR, existing',
      { controller: Plain, providers: [{ provide: APP_INTERCEPTOR, useExisting: DistributedLockInterceptor }] },
    ],
    ['useGlobalInterceptors', { controller: Plain, configure: (app) => app.useGlobalInterceptors(app.get(DistributedLockInterceptor)) }],
  ];

  it.each(ADAPTERS.flatMap((adapter) => bindings.map(([how, binding]) => [how, adapter, binding] as const)))(
    'is locked once, bound by %s (%s)',
    (_how, adapter, binding) => isLockedOnce(adapter, binding),
  );
});
