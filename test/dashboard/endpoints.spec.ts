import {
  type CanActivate,
  type CallHandler,
  type ExecutionContext,
  type INestApplication,
  type NestApplicationOptions,
  Injectable,
  type NestInterceptor,
  SetMetadata,
  VersioningType,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { LockConfigError, type Lease } from 'nestjs-distributed-lock/core';
import {
  basicAuth,
  DistributedLockDashboardModule,
  type DistributedLockDashboardOptions,
  type Verdict,
} from 'nestjs-distributed-lock/dashboard';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { map } from 'rxjs';
import { ADAPTERS, serve, type Adapter, type Answer } from '../integrations/http-app.js';
import { eventually } from '../support/eventually.js';
import { openStream } from './opened.js';

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
    stream: (headers?: Record<string, string>) => openStream(`${served.url}/ops/locks/events`, headers),
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

it('an app does not boot without a decision about who may look', () => {
  const forRoot = () => DistributedLockDashboardModule.forRoot({} as DistributedLockDashboardOptions);
  expect(forRoot).toThrow(LockConfigError);
  expect(forRoot).toThrow(/"authorize" must be a function that says who may "view"/);
});

it('a wrong option is named', () => {
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
    const { locks, stream } = await open(adapter);
    await locks.acquire('before');
    const page = await stream();
    const hello = await page.message('hello');
    expect(hello).toMatchObject({ version: 2, stores: ['default'], me: { by: 'anna', mayRelease: true } });
    await page.message('delta', ({ put }) => put.some(({ key }) => key === 'before'));
    const lease = await locks.acquire('order:42', { label: 'OrderService.pay' });
    const { put } = await page.message('delta', (delta) => delta.put.some(({ key }) => key === 'order:42'));
    const row = put.find(({ key }) => key === 'order:42');
    expect(row).toMatchObject({ store: 'default', kind: 'mutex', holder: { owner: lease.owner, label: 'OrderService.pay' }, waiters: 0 });
    await lease.release();
    await page.message('delta', ({ drop }) => drop.some(({ key }) => key === 'order:42'));
  });

  it('a key is answered with its holder, its waiters and what they hold', async () => {
    const { at, locks } = await open(adapter);
    await locks.acquire('stock:9', { label: 'holder' });
    const waiting = locks.using('order:42', () => locks.acquire('stock:9', { label: 'waiter', waitTimeout: 60_000 }));
    waiting.catch(() => undefined);
    await eventually(async () => (await locks.inspect('stock:9')).waiterCount === 1);
    const { body } = await at('/key?store=default&key=stock:9');
    expect(body).toMatchObject({
      ...{ key: 'stock:9', kind: 'mutex', holderCount: 1, waiterCount: 1, holders: [{ label: 'holder' }] },
      waiters: [{ label: 'waiter', holding: ['order:42'] }],
    });
    expect(await at('/key?store=other&key=stock:9')).toMatchObject({ status: 404 });
    expect(await at(`/key?store=default&key=${'x'.repeat(600)}`)).toMatchObject({ status: 422 });
  });

  it('a key is taken away, and its holder learns the operator and the reason', async () => {
    const { keyOf, locks, order } = await open(adapter);
    const lease = await locks.acquire('order:42');
    const key = keyOf(lease);
    expect(await order('/release', { keys: [key] })).toMatchObject({ status: 200, body: [{ key: 'order:42', outcome: 'forced' }] });
    expect(lease.signal.reason).toMatchObject({ name: 'LockLostError', revoked: { by: 'anna', reason: 'it hangs' } });
    const next = await locks.acquire('order:42');
    const again = await soon(() => order('/release', { keys: [key] }));
    expect(again).toMatchObject({ status: 200, body: [{ outcome: 'changed', holder: next.owner }] });
    expect(next.signal.aborted).toBe(false);
  });

  it('a free key is held for a while, and a key that is taken is not', async () => {
    const { isTaken, locks, order, stream } = await open(adapter);
    const page = await stream();
    const warned = jest.spyOn(locks.log, 'warn');
    const hold = { key: 'deploy', for: 60_000, reason: 'incident 812' };
    expect(await order('/hold', hold)).toMatchObject({ status: 200, body: { isHeld: true } });
    expect(warned).toHaveBeenCalledWith('NDL_HELD_BY_HAND', '"deploy" is held for 60000 ms by anna: incident 812', expect.anything());
    warned.mockRestore();
    expect(await isTaken('deploy')).toBe(true);
    await page.message('delta', ({ put }) => put.some(({ key, holder }) => key === 'deploy' && holder?.isSilent === false));
    expect((await locks.inspect('deploy')).holders).toMatchObject([{ phase: 'kept', app: 'anna:-incident-812' }]);
    const refused: unknown = await locks.acquire('deploy', { waitTimeout: 0 }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ holder: expect.stringMatching(/^anna:-incident-812@/) as string });
    expect(await soon(() => order('/hold', hold))).toMatchObject({ status: 200, body: { isHeld: false } });
  });

  it.each([
    ['no reason', '/release', { keys: [{ key: 'a', owner: 'b', token: 1 }], reason: 'x' }],
    ['no owner', '/release', { keys: [{ key: 'a', token: 1 }] }],
    ['no keys', '/release', { keys: [] }],
    ['too many keys', '/release', { keys: Array.from({ length: 101 }, () => ({ key: 'a', owner: 'b', token: 1 })) }],
    ['a negative grace', '/release', { keys: [{ key: 'a', owner: 'b', token: 1 }], grace: -1 }],
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
    ['another site of the same domain', { ...ORDER, 'sec-fetch-site': 'same-site' }],
    ['a page without the header', { ...SITE, 'content-type': 'application/json' }],
    ['another origin', { 'content-type': 'application/json', 'x-lock-dashboard': '1', origin: 'https://evil.example.com' }],
    ['no origin that can be read', { 'content-type': 'application/json', 'x-lock-dashboard': '1', origin: 'null' }],
  ])('an order of %s changes nothing', async (_what, headers) => {
    const { keyOf, locks, order } = await open(adapter, {}, (app) => app.enableCors({ origin: true, credentials: true }));
    const lease = await locks.acquire('order:42');
    const { status } = await order('/release', { keys: [keyOf(lease)] }, headers);
    expect([403, 415]).toContain(status);
    expect(lease.signal.aborted).toBe(false);
    await lease.renew();
  });

  it('what is shown is not read by another site', async () => {
    const { at, stream } = await open(adapter);
    const foreign = { 'sec-fetch-site': 'cross-site' };
    expect(await at('/key?store=default&key=a', { headers: foreign })).toMatchObject({ status: 403 });
    expect((await stream(foreign)).status).toBe(403);
    expect((await stream({ origin: 'https://evil.example.com' })).status).toBe(403);
    // An image of a page of plain HTTP.
    for (const path of ['/key?store=default&key=a', '/find?store=default&text=a'])
      expect(await at(path, { headers: {} })).toMatchObject({ status: 403 });
    expect((await stream({ referer: 'http://evil.example.com/' })).status).toBe(403);
    // Not a browser: its credentials decide.
    expect((await stream({})).status).toBe(200);
  });

  it('a page behind a proxy is used from the origins that are named', async () => {
    const { stream } = await open(adapter, { origins: ['https://ops.example.com'] });
    expect((await stream({ origin: 'https://ops.example.com' })).status).toBe(200);
    expect((await stream({ origin: 'https://ops.example.com.evil.example.com' })).status).toBe(403);
  });

  it('each of several keys has its own outcome', async () => {
    const { keyOf, locks, order } = await open(adapter);
    await locks.countDownLatch('latch').trySetCount(1);
    const lease = await locks.acquire('order:42');
    const { status, body } = await order('/release', { keys: [{ key: 'latch', owner: 'o', token: null }, keyOf(lease)] });
    expect([status, body]).toMatchObject([
      200,
      [{ outcome: 'failed', reason: expect.stringContaining('latch') as string }, { outcome: 'forced' }],
    ]);
  });

  it('a key is taken from the caller that was shown, with others of its process behind it', async () => {
    const { keyOf, locks, order } = await open(adapter);
    const keys = ['order:1', 'order:2'];
    const before = await Promise.all(keys.map((key) => locks.acquire(key)));
    const shown = keys.map((key) => locks.acquire(key));
    const next = keys.map((key) => locks.acquire(key));
    await Promise.all(before.map((lease) => lease.release()));
    const leases = await Promise.all(shown);
    const reports = await Promise.all(keys.map((key) => locks.inspect(key)));
    for (const [i, { fencingToken }] of reports.entries()) expect(leases[i]!.fencingToken).toBeLessThan(fencingToken!);
    const { body } = await order('/release', { keys: leases.map(keyOf), grace: 0 });
    expect(body).toMatchObject([{ outcome: 'forced' }, { outcome: 'forced' }]);
    expect(leases.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    for (const lease of await Promise.all(next)) expect(await lease.release()).toBe(true);
  });

  it('keys of another namespace are none of its', async () => {
    const imports = [dashboard()];
    const { ask, locks, store } = await serve(adapter, { imports }, { namespace: 'shop:' });
    await store.mutex.acquire({ key: 'billing:invoice', owner: 'b@h:1:u', ttl: 60_000, tokens: 1, queue: false });
    await locks.acquire('order:42');
    const at = (key: string) => ask(`ops/locks/key?store=default&key=${key}`, { headers: OWN });
    expect(await at('billing:invoice')).toMatchObject({ status: 404 });
    expect(await at('shop:order:42')).toMatchObject({ status: 200 });
    const keys = [{ key: 'billing:invoice', owner: 'b@h:1:u', token: null }];
    const order = { method: 'POST', headers: ORDER, body: JSON.stringify({ store: 'default', keys, ...REASON }) };
    expect(await ask('ops/locks/release', order)).toMatchObject({ status: 404 });
  });

  it('pages that go away before they are served leave nothing', async () => {
    const asked: Socket[] = [];
    let answer!: () => void;
    const decided = new Promise<void>((resolve) => (answer = resolve));
    const { stream, url } = await open(adapter, {
      authorize: async (_, context) => {
        asked.push(context.switchToHttp().getRequest<{ socket: Socket }>().socket);
        await decided;
        return true;
      },
    });
    const gone = Array.from({ length: 50 }, () => {
      const end = new AbortController();
      return { end, sent: fetch(`${url}/ops/locks/events`, { headers: OWN, signal: end.signal }).catch(() => undefined) };
    });
    await eventually(() => asked.length === 50);
    for (const { end } of gone) end.abort();
    await Promise.all(gone.map(({ sent }) => sent));
    await eventually(() => asked.every(({ destroyed }) => destroyed));
    answer();
    expect((await stream()).status).toBe(200);
  });

  it('who may only look cannot release', async () => {
    const { keyOf, locks, order, stream } = await open(adapter, { authorize: (action) => action === 'view' });
    const lease = await locks.acquire('order:42');
    expect(await (await stream()).message('hello')).toMatchObject({ me: { by: null, mayRelease: false } });
    expect(await order('/release', { keys: [keyOf(lease)] })).toMatchObject({ status: 403 });
    expect(await order('/hold', { key: 'deploy', for: 1000 })).toMatchObject({ status: 403 });
    expect(lease.signal.aborted).toBe(false);
  });

  it('who may not look sees nothing', async () => {
    const { at, stream } = await open(adapter, { authorize: () => Promise.resolve(false) });
    for (const path of ['', '/key?store=default&key=a']) expect(await at(path)).toMatchObject({ status: 403 });
    expect((await stream()).status).toBe(403);
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
    const { ask, url } = await serve(adapter, { imports, providers: [{ provide: APP_GUARD, useClass: Closed }] });
    expect(await ask('closed')).toMatchObject({ status: 403 });
    expect(await (await openStream(`${url}/open/events`)).message('hello')).toMatchObject({ me: { by: 'ben' } });
  });

  it('a password opens the page, and a wrong one is asked for again', async () => {
    const { at, stream } = await open(adapter, { authorize: basicAuth({ user: 'ops', password: 'geheim:1' }) });
    const signedIn = (text: string) => ({ ...OWN, authorization: `Basic ${Buffer.from(text).toString('base64')}` });
    for (const headers of [OWN, signedIn('ops:geheim'), signedIn('anna:geheim:1'), { ...OWN, authorization: 'Basic ' }]) {
      const refused = await at('', { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe('Basic realm="locks", charset="UTF-8"');
    }
    expect(await at('', { headers: signedIn('ops:geheim:1') })).toMatchObject({ status: 200 });
    expect(await (await stream(signedIn('ops:geheim:1'))).message('hello')).toMatchObject({ me: { by: 'ops', mayRelease: true } });
  });

  it('an app with a prefix, versions and an interceptor that wraps what is returned gets the same page', async () => {
    const wrap: NestInterceptor = { intercept: (_context, next: CallHandler) => next.handle().pipe(map((data: unknown) => ({ data }))) };
    const { ask, locks, url } = await serve(
      adapter,
      { imports: [dashboard()], providers: [{ provide: APP_INTERCEPTOR, useValue: wrap }] },
      {},
      (app) => app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI }),
    );
    await locks.acquire('order:42');
    expect((await ask('api/ops/locks')).text).toMatch(/^<!doctype html>/i);
    expect((await ask('api/ops/locks/key?store=default&key=order:42', { headers: OWN })).body).toMatchObject({ holderCount: 1 });
    const page = await openStream(`${url}/api/ops/locks/events`);
    await page.message('delta', ({ put }) => put.some(({ key }) => key === 'order:42'));
    expect(page.headers.get('cache-control')).toBe('no-store, no-transform');
  });

  it('an app closes at once while a page is open', async () => {
    const { app, stream } = await open(adapter, {}, undefined, { forceCloseConnections: false });
    const page = await stream();
    await page.message('hello');
    await app.close();
    await eventually(() => page.isOver);
  });

  it('an app without a body parser takes orders', async () => {
    const { keyOf, locks, order } = await open(adapter, {}, undefined, { bodyParser: false });
    const lease = await locks.acquire('order:42');
    expect(await order('/release', { keys: [keyOf(lease)] })).toMatchObject({ status: 200 });
  });

  it('what cannot be redacted is hidden, and its errors name no key', async () => {
    const redact = (key: string) => key.split(':')[1]!.toUpperCase();
    const { at, locks, order, stream } = await open(adapter, { redact });
    await locks.acquire('secret');
    await locks.countDownLatch('secret:latch').trySetCount(1);
    const page = await stream();
    const { put } = await page.message('delta', (delta) => delta.put.length > 1);
    const { key = '' } = put.find(({ kind }) => kind === 'mutex') ?? {};
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(await at(`/key?store=default&key=${key}`)).toMatchObject({ status: 200 });
    const answer = await eventually(async () => {
      const { status, text } = await soon(() => order('/release', { keys: [{ key: 'LATCH', owner: 'o', token: null }] }));
      if (status !== 200) throw new Error(text);
      return text;
    });
    expect(answer).toContain('failed');
    expect(answer).not.toContain('secret');
  });

  it('keys are hidden from the page and from its addresses', async () => {
    const { at, keyOf, locks, order, stream } = await open(adapter, { redact: (key) => `#${key.length}` });
    const lease = await locks.acquire('secret');
    const page = await stream();
    await page.message('delta', ({ put }) => put.some(({ key }) => key === '#6'));
    expect((await at('/key?store=default&key=%236')).body).toMatchObject({ key: '#6', holderCount: 1 });
    expect(await at('/key?store=default&key=secret')).toMatchObject({ status: 404 });
    expect(JSON.stringify(page.messages)).not.toContain('secret');
    expect(await order('/release', { keys: [{ ...keyOf(lease), key: '#6' }] })).toMatchObject({ body: [{ key: '#6', outcome: 'forced' }] });
  });
});

it('one person opens ten pages at most, which lock nobody else out, and another one when one of them is closed', async () => {
  const authorize = (_action: unknown, context: ExecutionContext) => {
    const { by } = context.switchToHttp().getRequest<{ headers: { by?: string } }>().headers;
    return by === undefined ? true : { by };
  };
  const { at, stream } = await open('express', { authorize });
  const as = (by: string) => ({ ...OWN, by });
  const pages = [];
  for (let i = 0; i < 10; i++) pages.push(await stream(as('anna')));
  const refused = await at('/events', { headers: as('anna') });
  expect(refused).toMatchObject({ status: 429, body: { message: '10 pages of anna are open already: close one.' } });
  expect((await stream(as('ben'))).status).toBe(200);
  expect((await stream()).status).toBe(200);
  pages[7]!.close();
  await eventually(async () => (await stream(as('anna'))).status === 200);
});

it.each<[Verdict, number]>([
  [true, 1],
  [{ by: 'anna' }, 0],
])('the log warns once if the right to release has no name: %p', async (verdict, times) => {
  const { locks, stream } = await open('express', { authorize: () => verdict });
  const warned = jest.spyOn(locks.log, 'warn');
  for (let i = 0; i < 2; i++) await (await stream()).message('hello');
  expect(warned.mock.calls.filter(([code]) => code === 'NDL_NO_OPERATOR')).toHaveLength(times);
});

it('a search that takes ten seconds is given up', async () => {
  const { at, locks, stream } = await open('express');
  const page = await stream();
  await page.message('stats', ({ listings }) => listings['default']?.state === 'whole');
  let signal: AbortSignal | undefined;
  jest.spyOn(locks, 'list').mockImplementationOnce(async function* (options) {
    signal = options?.signal;
    await once(signal!, 'abort');
    yield await Promise.reject<never>(new Error('It was aborted.'));
  });
  expect((await at('/find?store=default&text=a')).body).toEqual({ found: 0, isWhole: false });
  expect(signal?.aborted).toBe(true);
  jest.restoreAllMocks();
});

it('a request for the head of the stream ends', async () => {
  const { at } = await open('express');
  expect(await at('/events', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
});

it('the store is asked for a text, and what it finds is in the table', async () => {
  const { at, locks, stream } = await open('express');
  await locks.acquire('order:42');
  const list = jest.spyOn(locks, 'list').mockImplementationOnce(async function* () {});
  const page = await stream();
  await page.message('stats', ({ listings }) => listings['default']?.state === 'whole');
  expect((await at('/find?store=default&text=der:4')).body).toEqual({ found: 1, isWhole: true });
  await page.message('delta', ({ put }) => put.some(({ key }) => key === 'order:42'));
  expect((await at('/find?store=default&text=other')).body).toEqual({ found: 0, isWhole: true });
  expect(await at('/find?store=default&text=')).toMatchObject({ status: 422 });
  list.mockRestore();
});

it('a search in a process that has not opened the page is refused, and says what a load balancer must do', async () => {
  const { at } = await open('express');
  const text = /all requests of a page must reach the same process/;
  expect(await at('/find?store=default&text=a')).toMatchObject({ status: 409, text: expect.stringMatching(text) as string });
});

it('a key that is opened has the row that the store says, although no event came when it was released', async () => {
  const { at, locks, stream } = await open('express');
  const lease = await locks.acquire('order:42');
  const page = await stream();
  await page.message('delta', ({ put }) => put.some(({ key }) => key === 'order:42'));
  await locks.store.mutex.release({ key: 'order:42', owner: lease.owner, keepFor: 0 });
  expect((await at('/key?store=default&key=order:42')).body).toMatchObject({ holderCount: 0 });
  await page.message('delta', ({ drop }) => drop.some(({ key }) => key === 'order:42'));
});

it('a hold is among the last events of its key, and who did it', async () => {
  const { at, locks, order, stream } = await open('express');
  const noted = jest.spyOn(locks.store.inspector!, 'note');
  await (await stream()).message('stats');
  await order('/hold', { key: 'deploy', for: 60_000, reason: 'incident 812' });
  const { body } = await at('/key?store=default&key=deploy');
  expect(body).toMatchObject({ notes: [{ event: 'held by hand', by: 'anna', reason: 'incident 812' }] });
  expect(noted).toHaveBeenCalledWith('"deploy" is held for 60000 ms by anna: incident 812');
});
