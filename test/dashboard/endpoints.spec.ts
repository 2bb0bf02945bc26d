import type { CanActivate, CallHandler, ExecutionContext, INestApplication, NestApplicationOptions, NestInterceptor } from '@nestjs/common';
import { Injectable, SetMetadata, VersioningType } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { LockConfigError, type Lease } from 'nestjs-distributed-lock/core';
import type { DistributedLockDashboardOptions, Verdict } from 'nestjs-distributed-lock/dashboard';
import { basicAuth, DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { map } from 'rxjs';
import { ADAPTERS, serve, type Adapter, type Answer } from '../integrations/http-app.js';
import { eventually } from '../support/eventually.js';
import type { PageState } from '../../lib/dashboard/dashboard.protocol.js';

const SITE = { 'sec-fetch-site': 'same-origin' };
const OWN = { ...SITE, 'x-lock-dashboard': '1' };
const ORDER = { ...OWN, 'content-type': 'application/json' };
const REASON = { reason: 'it hangs', grace: 0, keepFor: 0 };

function dashboard(options: Partial<DistributedLockDashboardOptions> = {}) {
  return DistributedLockDashboardModule.forRoot({ path: 'ops/locks', authorize: () => ({ by: 'anna' }), ...options });
}

async function open(
  adapter: Adapter,
  options?: Partial<DistributedLockDashboardOptions>,
  configure?: (app: INestApplication) => void,
  appOptions?: NestApplicationOptions,
) {
  const served = await serve(adapter, { imports: [dashboard(options)] }, {}, configure, appOptions);
  const at = (path: string, init?: RequestInit) => served.ask(`ops/locks${path}`, { headers: OWN, ...init });
  const order = (path: string, body: object, headers: Record<string, string> = ORDER) =>
    at(path, { method: 'POST', headers, body: JSON.stringify({ store: 'default', ...REASON, ...body }) });
  const keyOf = (lease: Lease) => ({ key: lease.key, owner: lease.owner, token: lease.fencingToken });
  return {
    ...served,
    at,
    order,
    keyOf,
    state: async (query = '', headers: Record<string, string> = OWN) => (await at(`/state${query}`, { headers })).body as PageState,
  };
}

/** An order, again if there was another one within a second. */
function soon(send: () => Promise<Answer>): Promise<Answer> {
  return eventually(async () => {
    const answer = await send();
    if (answer.status === 429) throw new Error('too many orders');
    return answer;
  });
}

it('an app does not boot without a decision about who may look, nor with a wrong option, which is named', () => {
  const forRoot = () => DistributedLockDashboardModule.forRoot({} as DistributedLockDashboardOptions);
  expect(forRoot).toThrow(LockConfigError);
  expect(forRoot).toThrow(/"authorize" must be a function that says who may "view"/);
  expect(() => basicAuth({ user: 'ops', password: '' })).toThrow(/"password" must be a string that is not empty/);
  expect(() => dashboard({ guard: [] } as never)).toThrow(/unknown option "guard"/);
});

describe.each(ADAPTERS)('on %s', (adapter) => {
  it('the page is one file with a policy of its own', async () => {
    const { at } = await open(adapter);
    const page = await at('');
    expect(page).toMatchObject({ status: 200, text: expect.stringMatching(/^<!doctype html>/i) as string });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'sha256-/);
  });

  it('a key is shown that another caller takes, and is gone when it is released', async () => {
    const { locks, state } = await open(adapter);
    const lease = await locks.acquire('order:42', { label: 'OrderService.pay' });
    const holder = { owner: lease.owner, label: 'OrderService.pay' };
    expect(await state()).toMatchObject({
      version: 3,
      stores: [{ name: 'default', isAway: false }],
      me: { by: 'anna', mayRelease: true },
      found: 1,
      rows: [{ store: 'default', key: 'order:42', kind: 'mutex', holder, waiters: 0 }],
    });
    await lease.release();
    await eventually(async () => (await state()).rows.length === 0);
  });

  it('a key is answered with its holder, its waiters and what they hold', async () => {
    const { at, locks } = await open(adapter);
    await locks.acquire('stock:9', { label: 'holder' });
    const end = new AbortController();
    const waiting = locks.using('order:42', () => locks.acquire('stock:9', { label: 'waiter', waitTimeout: 60_000, signal: end.signal }));
    await eventually(async () => (await locks.inspect('stock:9')).waiterCount === 1);
    const { body } = await at('/key?store=default&key=stock:9');
    expect(body).toMatchObject({
      ...{ key: 'stock:9', kind: 'mutex', holderCount: 1, waiterCount: 1, holders: [{ label: 'holder' }] },
      waiters: [{ label: 'waiter', count: 1, holding: ['order:42'] }],
    });
    end.abort();
    await waiting.catch(() => undefined);
    expect(await at('/key?store=other&key=stock:9')).toMatchObject({ status: 404 });
    expect(await at(`/key?store=default&key=${'x'.repeat(600)}`)).toMatchObject({ status: 422 });
  });

  it('a key is taken away, and its holder learns the operator and the reason', async () => {
    const { keyOf, locks, order } = await open(adapter);
    const lease = await locks.acquire('order:42');
    const key = keyOf(lease);
    expect(await order('/release', key)).toMatchObject({ status: 200, body: { outcome: 'forced' } });
    expect(lease.signal.reason).toMatchObject({ name: 'LockLostError', revoked: { by: 'anna', reason: 'it hangs' } });
    const next = await locks.acquire('order:42');
    const again = await soon(() => order('/release', key));
    expect(again).toMatchObject({ status: 200, body: { outcome: 'changed', holder: next.owner } });
    expect(next.signal.aborted).toBe(false);
  });

  it('a free key is held for a while, which is among its last events, and a key that is taken is not', async () => {
    const { at, isTaken, locks, order, state } = await open(adapter);
    const noted = jest.spyOn(locks.store.inspector!, 'note');
    const warned = jest.spyOn(locks.log, 'warn');
    const hold = { key: 'deploy', for: 60_000, reason: 'incident 812' };
    expect(await order('/hold', hold)).toMatchObject({ status: 200, body: { isHeld: true } });
    expect(warned).toHaveBeenCalledWith('NDL_HELD_BY_HAND', '"deploy" is held for 60000 ms by anna: incident 812', expect.anything());
    warned.mockRestore();
    expect(noted).toHaveBeenCalledWith('"deploy" is held for 60000 ms by anna: incident 812');
    const { body } = await at('/key?store=default&key=deploy');
    expect(body).toMatchObject({ notes: [{ event: 'held by hand', by: 'anna', reason: 'incident 812' }] });
    expect(await isTaken('deploy')).toBe(true);
    expect((await state()).rows).toMatchObject([{ key: 'deploy', holder: { phase: 'kept', isSilent: false } }]);
    expect((await locks.inspect('deploy')).holders).toMatchObject([{ phase: 'kept', app: 'anna:-incident-812' }]);
    const refused: unknown = await locks.acquire('deploy', { waitTimeout: 0 }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ holder: expect.stringMatching(/^anna:-incident-812@/) as string });
    expect(await soon(() => order('/hold', hold))).toMatchObject({ status: 200, body: { isHeld: false } });
  });

  it.each([
    ['no reason', '/release', { key: 'a', owner: 'b', token: 1, reason: 'x' }],
    ['no owner', '/release', { key: 'a', token: 1 }],
    ['no token', '/release', { key: 'a', owner: 'b' }],
    ['a negative grace', '/release', { key: 'a', owner: 'b', token: 1, grace: -1 }],
    ['a hold for ever', '/hold', { key: 'a', for: Number.MAX_SAFE_INTEGER }],
    ['a hold of no key', '/hold', { for: 1000 }],
    ['a hold for no time', '/hold', { key: 'a', for: 0 }],
  ])('an order with %s is refused', async (_what, path, body) => {
    const { order } = await open(adapter);
    expect(await order(path, body)).toMatchObject({ status: 422 });
  });

  it.each<[string, Record<string, string>]>([
    ['a form', { ...ORDER, 'content-type': 'application/x-www-form-urlencoded' }],
    ['a text', { ...ORDER, 'content-type': 'text/plain' }],
    ['another site', { ...ORDER, 'sec-fetch-site': 'cross-site' }],
    ['a page without the header', { ...SITE, 'content-type': 'application/json' }],
  ])('an order of %s changes nothing', async (_what, headers) => {
    const { keyOf, locks, order } = await open(adapter, {}, (app) => app.enableCors({ origin: true, credentials: true }));
    const lease = await locks.acquire('order:42');
    const { status } = await order('/release', keyOf(lease), headers);
    expect([403, 415]).toContain(status);
    expect(lease.signal.aborted).toBe(false);
    await lease.renew();
  });

  it('what is shown is not read by another site', async () => {
    const { at } = await open(adapter);
    for (const path of ['/key?store=default&key=a', '/state']) {
      const foreign = { 'x-lock-dashboard': '1', 'sec-fetch-site': 'cross-site' };
      for (const headers of [foreign, {}]) expect(await at(path, { headers })).toMatchObject({ status: 403 });
    }
    // Not a browser: its credentials decide.
    expect(await at('/state', { headers: { 'x-lock-dashboard': '1' } })).toMatchObject({ status: 200 });
  });

  it('a page behind a proxy is used from the origins that are named', async () => {
    const { at } = await open(adapter, { origins: ['https://ops.example.com'] });
    const from = (origin: string) => at('/state', { headers: { 'x-lock-dashboard': '1', origin } });
    expect((await from('https://ops.example.com')).status).toBe(200);
    expect((await from('https://ops.example.com.evil.example.com')).status).toBe(403);
  });

  it('a key that cannot be taken away says why', async () => {
    const { locks, order } = await open(adapter);
    await locks.countDownLatch('latch').trySetCount(1);
    const { status, text } = await order('/release', { key: 'latch', owner: 'o@h:1:u', token: null });
    expect([status, text]).toEqual([422, expect.stringContaining('latch')]);
  });

  it('a key is taken from the caller that was shown, with others of its process behind it', async () => {
    const { keyOf, locks, order } = await open(adapter);
    const before = await locks.acquire('order:1');
    const [shown, next] = [locks.acquire('order:1'), locks.acquire('order:1')];
    await before.release();
    const lease = await shown;
    expect(lease.fencingToken).toBeLessThan((await locks.inspect('order:1')).fencingToken!);
    expect(await order('/release', keyOf(lease))).toMatchObject({ body: { outcome: 'forced' } });
    expect(lease.signal.aborted).toBe(true);
    expect(await (await next).release()).toBe(true);
  });

  it('keys of another namespace are none of its', async () => {
    const imports = [dashboard()];
    const { ask, locks, store } = await serve(adapter, { imports }, { namespace: 'shop:' });
    await store.mutex.acquire({ key: 'billing:invoice', owner: 'b@h:1:u', ttl: 60_000, tokens: 1, queue: false });
    await locks.acquire('order:42');
    const at = (key: string) => ask(`ops/locks/key?store=default&key=${key}`, { headers: OWN });
    expect(await at('billing:invoice')).toMatchObject({ status: 404 });
    expect(await at('shop:order:42')).toMatchObject({ status: 200 });
    const meant = { store: 'default', key: 'billing:invoice', owner: 'b@h:1:u', token: null };
    const order = { method: 'POST', headers: ORDER, body: JSON.stringify({ ...meant, ...REASON }) };
    expect(await ask('ops/locks/release', order)).toMatchObject({ status: 404 });
  });

  it('who may only look cannot release', async () => {
    const { keyOf, locks, order, state } = await open(adapter, { authorize: (action) => action === 'view' });
    const lease = await locks.acquire('order:42');
    expect(await state()).toMatchObject({ me: { by: null, mayRelease: false } });
    expect(await order('/release', keyOf(lease))).toMatchObject({ status: 403 });
    expect(await order('/hold', { key: 'deploy', for: 1000 })).toMatchObject({ status: 403 });
    expect(lease.signal.aborted).toBe(false);
  });

  it('who may not look sees nothing', async () => {
    const { at } = await open(adapter, { authorize: () => Promise.resolve(false) });
    for (const path of ['', '/state', '/key?store=default&key=a']) expect(await at(path)).toMatchObject({ status: 403 });
  });

  it('guards of the app run before, and their decorators apply', async () => {
    const Public = () => SetMetadata('public', true);
    @Injectable()
    class Closed implements CanActivate {
      constructor(private readonly reflector: Reflector) {}
      canActivate(context: ExecutionContext): boolean {
        return this.reflector.getAllAndOverride<boolean>('public', [context.getHandler(), context.getClass()]);
      }
    }
    const user: CanActivate = {
      canActivate(context) {
        Object.assign(context.switchToHttp().getRequest<object>(), { user: 'ben' });
        return true;
      },
    };
    const authorize = (_action: unknown, context: ExecutionContext) => ({ by: context.switchToHttp().getRequest<{ user: string }>().user });
    const paths = ['closed', 'open'] as const;
    const imports = paths.map((path) =>
      DistributedLockDashboardModule.forRoot({ path, authorize, guards: [user], decorators: path === 'open' ? [Public()] : [] }),
    );
    const { ask } = await serve(adapter, { imports, providers: [{ provide: APP_GUARD, useClass: Closed }] });
    expect(await ask('closed')).toMatchObject({ status: 403 });
    expect((await ask('open/state', { headers: OWN })).body).toMatchObject({ me: { by: 'ben' } });
  });

  it('a password opens the page, and a wrong one is asked for again', async () => {
    const { at, state } = await open(adapter, { authorize: basicAuth({ user: 'ops', password: 'geheim:1' }) });
    const signedIn = (text: string) => ({ ...OWN, authorization: `Basic ${Buffer.from(text).toString('base64')}` });
    for (const headers of [OWN, signedIn('ops:geheim'), signedIn('anna:geheim:1'), { ...OWN, authorization: 'Basic ' }]) {
      const refused = await at('', { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe('Basic realm="locks", charset="UTF-8"');
    }
    expect(await at('', { headers: signedIn('ops:geheim:1') })).toMatchObject({ status: 200 });
    expect(await state('', signedIn('ops:geheim:1'))).toMatchObject({ me: { by: 'ops', mayRelease: true } });
  });

  it('an app with a prefix, versions and an interceptor that wraps what is returned gets the same page', async () => {
    const wrap: NestInterceptor = { intercept: (_context, next: CallHandler) => next.handle().pipe(map((data: unknown) => ({ data }))) };
    const { ask, locks } = await serve(
      adapter,
      { imports: [dashboard()], providers: [{ provide: APP_INTERCEPTOR, useValue: wrap }] },
      {},
      (app) => app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI }),
    );
    await locks.acquire('order:42');
    expect((await ask('api/ops/locks')).text).toMatch(/^<!doctype html>/i);
    expect((await ask('api/ops/locks/key?store=default&key=order:42', { headers: OWN })).body).toMatchObject({ holderCount: 1 });
    const state = await ask('api/ops/locks/state', { headers: OWN });
    expect(state.body).toMatchObject({ rows: [{ key: 'order:42' }] });
    expect(state.headers.get('cache-control')).toBe('no-store');
  });

  it('an app without a body parser takes orders', async () => {
    const { keyOf, locks, order } = await open(adapter, {}, undefined, { bodyParser: false });
    const lease = await locks.acquire('order:42');
    expect(await order('/release', keyOf(lease))).toMatchObject({ status: 200 });
  });

  it('what cannot be redacted is hidden, and its errors name no key', async () => {
    const redact = (key: string) => key.split(':')[1]!.toUpperCase();
    const { at, locks, order, state } = await open(adapter, { redact });
    await locks.acquire('secret');
    await locks.countDownLatch('secret:latch').trySetCount(1);
    const { key = '' } = (await state()).rows.find(({ kind }) => kind === 'mutex') ?? {};
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(await at(`/key?store=default&key=${key}`)).toMatchObject({ status: 200 });
    const answer = await order('/release', { key: 'LATCH', owner: 'o@h:1:u', token: null });
    expect([answer.status, answer.text]).toEqual([422, expect.not.stringContaining('secret')]);
  });

  it('keys are hidden from the page and from its addresses', async () => {
    const { at, keyOf, locks, order, state } = await open(adapter, { redact: (key) => `#${key.length}` });
    const lease = await locks.acquire('secret');
    await locks.acquire('secret', { waitTimeout: 20 }).catch(() => undefined);
    const shown = await state();
    expect([shown.rows[0]?.key, shown.notes[0]?.key]).toEqual(['#6', '#6']);
    expect((await state('?q=%236')).found).toBe(1);
    expect((await state('?q=secret')).found).toBe(0);
    expect((await at('/key?store=default&key=%236')).body).toMatchObject({ key: '#6', holderCount: 1 });
    expect(await at('/key?store=default&key=secret')).toMatchObject({ status: 404 });
    expect(JSON.stringify(shown)).not.toContain('secret');
    expect(await order('/release', { ...keyOf(lease), key: '#6' })).toMatchObject({ body: { outcome: 'forced' } });
  });
});

it.each<[Verdict, number]>([
  [true, 1],
  [{ by: 'anna' }, 0],
])('the log warns once if the right to release has no name: %p', async (verdict, times) => {
  const { locks, state } = await open('express', { authorize: () => verdict });
  const warned = jest.spyOn(locks.log, 'warn');
  for (let i = 0; i < 2; i++) await state();
  expect(warned.mock.calls.filter(([code]) => code === 'NDL_NO_OPERATOR')).toHaveLength(times);
});

it('a search finds keys, labels and processes, of any row', async () => {
  const { at, locks, state } = await open('express');
  await locks.acquire('order:42', { label: 'Orders.pay' });
  await locks.acquire('stock:9');
  for (const text of ['der:4', 'orders.PAY', `:${process.pid}+order`])
    expect(await state(`?q=${text}`)).toMatchObject({ found: 1, rows: [{ key: 'order:42' }] });
  expect((await state('?q=other')).found).toBe(0);
  expect(await at(`/state?q=${'x'.repeat(513)}`)).toMatchObject({ status: 422 });
  expect(await at('/state?store=other')).toMatchObject({ status: 404 });
});

it('a key that is opened has the row that the store says', async () => {
  const { at, locks, state } = await open('express');
  const lease = await locks.acquire('order:42');
  expect((await state()).found).toBe(1);
  await locks.store.mutex.release({ key: 'order:42', owner: lease.owner, keepFor: 0 });
  expect((await at('/key?store=default&key=order:42')).body).toMatchObject({ holderCount: 0 });
  expect((await state()).rows).toEqual([]);
});
