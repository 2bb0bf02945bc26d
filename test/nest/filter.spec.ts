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
import { boot, listen } from './boot.js';

const SECRET = 'order-of-alice';
const KEY = `${SECRET}-locks`;
const named = { key: KEY };

/** Fails with what a test puts in. */
@Controller()
class OrderController {
  error: unknown;
  constructor(@Inject(Locks) private readonly locks: Locks) {}

  @Get('locked')
  @DistributedLock({ value: SECRET, waitTimeout: 50 })
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

type Boot = Parameters<typeof boot>;
const asAppFilter = { controllers: [OrderController], providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] };
const useGlobalFilters = (app: INestApplication) => app.useGlobalFilters(new LockExceptionFilter(app.get(HttpAdapterHost)));

async function serve(metadata: Boot[0] = asAppFilter, options?: Boot[1], configure?: Boot[2]) {
  const booted = await boot(metadata, options, configure);
  const url = await listen(booted.app);
  const ask = async (path: string) => {
    const response = await fetch(`${url}/${path}`);
    const text = await response.text();
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      text,
      body: text.startsWith('{') && (JSON.parse(text) as object),
    };
  };
  const failWith = (error: unknown) => {
    booted.get(OrderController).error = error;
    return ask('failing');
  };
  return { ...booted, ask, failWith };
}

const LOCKED = { statusCode: 423, error: 'Locked', message: expect.any(String), code: 'LOCK_TIMEOUT' };

describe('LockExceptionFilter', () => {
  @UseFilters(LockExceptionFilter)
  @Controller()
  class FilteredController extends OrderController {}
  const filtered = { controllers: [FilteredController] };

  it.each<[string, Boot[0], Boot[2]]>([
    ['APP_FILTER', asAppFilter, undefined],
    ['useGlobalFilters', { controllers: [OrderController] }, useGlobalFilters],
    ['useGlobalFilters without a host', { controllers: [OrderController] }, (app) => app.useGlobalFilters(new LockExceptionFilter())],
    ['@UseFilters', filtered, undefined],
  ])('answers 423 with Retry-After where the key stays taken, as %s', async (_how, metadata, configure) => {
    const { ask, locks } = await serve(metadata, {}, configure);
    const lease = await locks.acquire(KEY, { keyTimeout: 30_000 });
    const refused = await ask('locked');
    expect(refused).toMatchObject({ status: 423, retryAfter: expect.stringMatching(/^[1-9]\d*$/), body: LOCKED });
    expect(refused.text).not.toContain(SECRET);
    await lease.release();
    expect(await ask('locked')).toMatchObject({ status: 200, retryAfter: null, body: { order: 1 } });
  });

  it('answers 503 with Retry-After where the store is out of reach', async () => {
    const store = redisStore({ options: { path: '/nobody/listens/here.sock', disconnectTimeout: 10 }, requestTimeout: 100 });
    const { ask } = await serve(asAppFilter, { store });
    const refused = await ask('locked');
    expect(refused).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^[1-9]\d*$/), body: { code: 'LOCK_STORE' } });
    expect(refused.text).not.toContain(SECRET);
    expect(refused.text).not.toContain('here.sock');
  });

  it('answers 503 with Retry-After where waiting is over because the app closes', async () => {
    const { ask, locks } = await serve();
    await locks.acquire(KEY, { keyTimeout: 30_000 });
    locks.stopWaiting();
    const refused = await ask('locked');
    expect(refused).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^[1-9]\d*$/), body: { code: 'LOCK_ABORTED' } });
    expect(refused.text).not.toContain(SECRET);
  });

  it.each([
    ['LockTimeoutError', new LockTimeoutError(`Held: ${KEY}`, named), 423],
    ['StoreError', new StoreError(`Away: ${KEY}`, { ...named, transient: true }), 503],
    ['a StoreError that no retry mends', new StoreError(`NOAUTH: ${KEY}`, { ...named, transient: false }), 503],
    ['QuorumError', new QuorumError(`Too few: ${KEY}`, { ...named, votes: [KEY] }), 503],
    ['a shutdown’s LockAbortedError', new LockAbortedError(`Closing: ${KEY}`, { ...named, reason: 'shutdown' }), 503],
  ])('tells nothing of the key in the answer to a %s', async (_what, error, status) => {
    const refused = await (await serve()).failWith(error);
    expect(refused).toMatchObject({
      status,
      retryAfter: expect.stringMatching(/^[1-9]\d*$/),
      body: { statusCode: status, code: error.code },
    });
    expect(refused.text).not.toContain(SECRET);
  });

  it.each<[string, Error, number]>([
    ['a LockLostError', new LockLostError(`Lost: ${KEY}`, named), 500],
    ['a LockConfigError', new LockConfigError(`Wrong: ${KEY}`, named), 500],
    ['a signal’s LockAbortedError', new LockAbortedError(`Aborted: ${KEY}`, { ...named, reason: 'signal' }), 500],
    ['an error that is no lock’s', new Error(SECRET), 500],
    ['an HttpException', new NotFoundException('no such order'), 404],
    ['an HttpException with 423', new HttpException({ mine: true }, 423), 423],
  ])('leaves %s as it is without the filter', async (_what, error, status) => {
    const [withFilter, without] = [await serve(), await serve({ controllers: [OrderController] })];
    const answer = await withFilter.failWith(error);
    expect(answer).toMatchObject({ status, retryAfter: null });
    expect(answer).toEqual(await without.failWith(error));
    expect(answer.text).not.toContain(SECRET);
  });

  it('is opt-in: without it a timeout is an internal error that says nothing of the key', async () => {
    const { ask, locks } = await serve({ controllers: [OrderController] });
    await locks.acquire(KEY, { keyTimeout: 30_000 });
    expect(await ask('locked')).toMatchObject({ status: 500, retryAfter: null, text: expect.not.stringContaining(SECRET) });
  });

  it('ends an answer that had begun already', async () => {
    const { ask, locks } = await serve();
    await locks.acquire(KEY, { keyTimeout: 30_000 });
    expect(await ask('begun')).toMatchObject({ status: 200, text: 'begun' });
  });

  it('answers in the form of other contexts, and hands the error on where it knows none', async () => {
    const { get, app } = await serve();
    expect(get(OrderController)).toBeDefined();
    const filter = new LockExceptionFilter(app.get(HttpAdapterHost));
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
