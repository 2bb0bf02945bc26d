import {
  Controller,
  Get,
  HttpException,
  Inject,
  NotFoundException,
  Res,
  UseFilters,
  type ArgumentsHost,
  type INestApplication,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import type { Response } from 'express';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import {
  currentLease,
  DistributedLock,
  LockAbortedError,
  LockConfigError,
  LockExceptionFilter,
  LockLostError,
  Locks,
  LockTimeoutError,
  QuorumError,
  StoreError,
} from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { startRedis } from '../support/redis-server.js';
import { ADAPTERS, serve } from './http-app.js';
import { lockAmong, place } from './place.js';

const key = () => currentLease()?.key ?? 'unlocked';
const SECRET = 'order-of-alice';

place('HTTP', 'LockExceptionFilter, bound to the app: 423 and 503, on Express and Fastify', (order) => {
  @Controller()
  class LockedController {
    readonly gate = new Gate();

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, Get('order'))
    async order() {
      await this.gate.pass();
      return { key: key() };
    }
  }
  const metadata = { controllers: [LockedController], providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] };

  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    const { ask, get, acquired } = await serve(adapter, metadata);
    const { gate } = get(LockedController);
    const first = ask('order');
    await eventually(() => gate.arrived === 1);
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([423, '1']);
    expect(refused.body).toMatchObject({ statusCode: 423, error: 'Locked', code: 'LOCK_TIMEOUT' });
    expect(refused.text).not.toContain(SECRET);
    gate.open();
    expect((await first).body).toEqual({ key: `${SECRET}-locks` });
    expect((await ask('order')).status).toBe(200);
    expect([gate.arrived, acquired]).toEqual([2, [`${SECRET}-locks`, `${SECRET}-locks`]]);
  });

  it.each(ADAPTERS)('answers 503 with Retry-After while Redis is away, and runs nothing (%s)', async (adapter) => {
    const redis = await startRedis({ port: 'free' });
    const store = redisStore({ options: { ...redis.connection, disconnectTimeout: 10 }, requestTimeout: 500 });
    const { ask, get } = await serve(adapter, metadata, { store });
    const { gate } = get(LockedController);
    gate.open();
    expect((await ask('order')).status).toBe(200);
    await redis.kill();
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(refused.body).toMatchObject({ statusCode: 503, code: 'LOCK_STORE' });
    expect(refused.text).not.toContain(SECRET);
    expect(gate.arrived).toBe(1);
    await redis.stop();
  });
});

place('HTTP', '@UseFilters(LockExceptionFilter) on a handler, on Express and Fastify', (order) => {
  @Controller()
  class FilteredController {
    readonly gate = new Gate();

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, UseFilters(LockExceptionFilter), Get('order'))
    async order() {
      await this.gate.pass();
      return { key: key() };
    }
  }

  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    const { ask, get } = await serve(adapter, { controllers: [FilteredController] });
    const { gate } = get(FilteredController);
    const first = ask('order');
    await eventually(() => gate.arrived === 1);
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after'), refused.body]).toMatchObject([423, '1', { code: 'LOCK_TIMEOUT' }]);
    gate.open();
    expect((await first).body).toEqual({ key: `${SECRET}-locks` });
    expect(gate.arrived).toBe(1);
  });
});

const KEY = `${SECRET}-locks`;
const named = { key: KEY };
const LONG = { keyTimeout: 60_000 };

/** Fails with what a test puts in. */
@Controller()
class OrderController {
  error: unknown;
  constructor(@Inject(Locks) private readonly locks: Locks) {}

  @Get('locked')
  @DistributedLock({ value: SECRET, waitTimeout: 0 })
  async locked() {
    return { order: 1 };
  }
  @Get('failing')
  async failing() {
    throw this.error;
  }
  @Get('begun')
  async begun(@Res() response: Response) {
    response.write('begun');
    await this.locks.acquire(KEY, { waitTimeout: 0 });
  }
}
const asAppFilter = { controllers: [OrderController], providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] };
const unfiltered = { controllers: [OrderController] };

/** The answer to a request that fails with this error, and nothing of the key in it. */
async function answerTo(error: unknown, metadata: typeof unfiltered = asAppFilter) {
  const { ask, get } = await serve('express', metadata);
  get(OrderController).error = error;
  const { status, headers, text, body } = await ask('failing');
  expect(text).not.toContain(SECRET);
  return { status, retryAfter: headers.get('retry-after'), body };
}

describe('LockExceptionFilter', () => {
  @UseFilters(LockExceptionFilter)
  @Controller()
  class FilteredController extends OrderController {}

  it.each<[string, typeof unfiltered, ((app: INestApplication) => void) | undefined]>([
    ['useGlobalFilters', unfiltered, (app) => app.useGlobalFilters(new LockExceptionFilter(app.get(HttpAdapterHost)))],
    ['useGlobalFilters without a host', unfiltered, (app) => app.useGlobalFilters(new LockExceptionFilter())],
    ['@UseFilters of the controller', { controllers: [FilteredController] }, undefined],
  ])('answers 423 with Retry-After where the key stays taken, as %s', async (_how, metadata, configure) => {
    const { ask, locks } = await serve('express', metadata, {}, configure);
    const lease = await locks.acquire(KEY, LONG);
    const refused = await ask('locked');
    expect([refused.status, refused.headers.get('retry-after'), refused.body]).toMatchObject([423, '1', { code: 'LOCK_TIMEOUT' }]);
    await lease.release();
    expect(await ask('locked')).toMatchObject({ status: 200, body: { order: 1 } });
  });

  it.each<[string, Error & { code: string }, number]>([
    ['LockTimeoutError', new LockTimeoutError(`Held: ${KEY}`, named), 423],
    ['StoreError', new StoreError(`Away: ${KEY}`, { ...named, transient: true }), 503],
    ['StoreError that no retry mends', new StoreError(`NOAUTH: ${KEY}`, { ...named, transient: false }), 503],
    ['QuorumError', new QuorumError(`Too few: ${KEY}`, { ...named, votes: [KEY] }), 503],
    ['LockAbortedError of a shutdown', new LockAbortedError(`Closing: ${KEY}`, { ...named, reason: 'shutdown' }), 503],
  ])('tells nothing of the key in the answer to a %s', async (_what, error, status) => {
    expect(await answerTo(error)).toMatchObject({ status, retryAfter: '1', body: { statusCode: status, code: error.code } });
  });

  it.each<[string, Error, number]>([
    ['a LockLostError', new LockLostError(`Lost: ${KEY}`, named), 500],
    ['a LockConfigError', new LockConfigError(`Wrong: ${KEY}`, named), 500],
    ['a LockAbortedError of a signal', new LockAbortedError(`Aborted: ${KEY}`, { ...named, reason: 'signal' }), 500],
    ['an error that is no lock’s', new Error(SECRET), 500],
    ['an HttpException', new NotFoundException('no such order'), 404],
    ['an HttpException with 423', new HttpException({ mine: true }, 423), 423],
  ])('leaves %s as it is without the filter', async (_what, error, status) => {
    const answer = await answerTo(error);
    expect(answer).toMatchObject({ status, retryAfter: null });
    expect(answer).toEqual(await answerTo(error, unfiltered));
  });

  it('is opt-in: without it a timeout is an internal error that says nothing of the key', async () => {
    const error = new LockTimeoutError(`Held: ${KEY}`, named);
    expect(await answerTo(error, unfiltered)).toMatchObject({ status: 500, retryAfter: null });
  });

  it('ends an answer that had begun already', async () => {
    const { ask, locks } = await serve('express', asAppFilter);
    await locks.acquire(KEY, LONG);
    expect(await ask('begun')).toMatchObject({ status: 200, text: 'begun' });
  });

  it('answers in the form of other contexts, and hands the error on where it knows none', async () => {
    const filter = new LockExceptionFilter();
    const error = new LockTimeoutError('Held', named);
    const catchIn = (type: string) => filter.catch(error, { getType: () => type } as unknown as ArgumentsHost);
    const told = { status: 'error', message: expect.stringContaining('Try again'), code: 'LOCK_TIMEOUT' };
    const answer = catchIn('rpc');
    expect(isObservable(answer)).toBe(true);
    await expect(lastValueFrom(answer as Observable<unknown>)).rejects.toEqual(told);
    expect(catchIn('graphql')).toMatchObject({ status: 423, response: { code: 'LOCK_TIMEOUT' } });
    expect(catchIn('another')).toBe(error);
    const emit = jest.fn();
    filter.catch(error, { getType: () => 'ws', switchToWs: () => ({ getClient: () => ({ emit }) }) } as unknown as ArgumentsHost);
    expect(emit).toHaveBeenCalledWith('exception', told);
    expect(JSON.stringify(emit.mock.calls)).not.toContain(SECRET);
  });
});
