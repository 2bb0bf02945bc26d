// What an HTTP client is answered where a lock is taken or its store is away, and what the document of the API says.
import {
  applyDecorators,
  Body,
  Controller,
  Get,
  HttpCode,
  HttpException,
  Inject,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Res,
  UseFilters,
  type ArgumentsHost,
  type INestApplication,
  type ModuleMetadata,
} from '@nestjs/common';
import { APP_FILTER, HttpAdapterHost } from '@nestjs/core';
import { ApiBody, ApiOkResponse, ApiOperation, ApiProperty, ApiQuery, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import type { Response } from 'express';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import {
  LockAbortedError,
  LockConfigError,
  LockExceptionFilter,
  LockLostError,
  Locks,
  LockTimeoutError,
  QuorumError,
  StoreError,
  type DistributedLockOptions,
} from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve, storeThatIsAway, type Adapter } from './http-app.js';
import { key, lockAmong, LONG, aboveAndBelow, type Order } from './ways.js';

const SECRET = 'order-of-alice';
const KEY = `${SECRET}-locks`;
const named = { key: KEY };
const APP_WIDE = { provide: APP_FILTER, useClass: LockExceptionFilter };

/** An app with one locked handler, which has these decorators besides. */
async function serveOrder(adapter: Adapter, order: Order, options: object, others: MethodDecorator[], metadata: ModuleMetadata = {}) {
  @Controller()
  class LockedController {
    readonly gate = new Gate();

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, ...others, Get('order'))
    async order() {
      await this.gate.pass();
      return { key: key() };
    }
  }
  const served = await serve(adapter, { ...metadata, controllers: [LockedController] }, options);
  return { ...served, gate: served.get(LockedController).gate };
}

/** A request is refused while another is in, without the key, and runs nothing. */
async function expectLocked({ ask, gate, acquired }: Awaited<ReturnType<typeof serveOrder>>): Promise<void> {
  const first = ask('order');
  await eventually(() => gate.arrived === 1);
  const refused = await ask('order');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([423, '1']);
  expect(refused.body).toMatchObject({ statusCode: 423, error: 'Locked', code: 'LOCK_TIMEOUT' });
  expect(refused.text).not.toContain(SECRET);
  gate.open();
  expect((await first).body).toEqual({ key: KEY });
  expect([gate.arrived, acquired]).toEqual([1, [KEY]]);
}

aboveAndBelow('HTTP', 'LockExceptionFilter, bound to the app: 423 and 503, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    await expectLocked(await serveOrder(adapter, order, {}, [], { providers: [APP_WIDE] }));
  });

  it.each(ADAPTERS)('answers 503 with Retry-After while Redis is away, and runs nothing (%s)', async (adapter) => {
    const { ask, gate } = await serveOrder(adapter, order, { store: storeThatIsAway() }, [], { providers: [APP_WIDE] });
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(refused.body).toMatchObject({ statusCode: 503, code: 'LOCK_STORE' });
    expect(refused.text).not.toContain(SECRET);
    expect(gate.arrived).toBe(0);
  });
});

aboveAndBelow('HTTP', '@UseFilters(LockExceptionFilter) on a handler, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    await expectLocked(await serveOrder(adapter, order, {}, [UseFilters(LockExceptionFilter)]));
  });
});

/** Fails with what a test gives it. */
@Controller()
class FailingController {
  error: unknown;
  constructor(@Inject(Locks) private readonly locks: Locks) {}

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
@UseFilters(LockExceptionFilter)
@Controller()
class FilteredController extends FailingController {}
const unfiltered = { controllers: [FailingController] };
const asAppFilter = { ...unfiltered, providers: [APP_WIDE] };

/** The answer to a request that fails with this error, and nothing of the key in it. */
async function answerTo(error: unknown, metadata: ModuleMetadata = asAppFilter, configure?: (app: INestApplication) => void) {
  const { app, ask } = await serve('express', metadata, {}, configure);
  app.get<FailingController>(metadata.controllers![0]!).error = error;
  const { status, headers, text, body } = await ask('failing');
  expect(text).not.toContain(SECRET);
  return { status, retryAfter: headers.get('retry-after'), body };
}

describe('LockExceptionFilter', () => {
  it.each<[string, ModuleMetadata, ((app: INestApplication) => void) | undefined]>([
    ['useGlobalFilters', unfiltered, (app) => app.useGlobalFilters(new LockExceptionFilter(app.get(HttpAdapterHost)))],
    ['useGlobalFilters without a host', unfiltered, (app) => app.useGlobalFilters(new LockExceptionFilter())],
    ['@UseFilters of the controller', { controllers: [FilteredController] }, undefined],
  ])('answers 423 with Retry-After, as %s', async (_how, metadata, configure) => {
    const answer = await answerTo(new LockTimeoutError(`Held: ${KEY}`, named), metadata, configure);
    expect(answer).toMatchObject({ status: 423, retryAfter: '1', body: { code: 'LOCK_TIMEOUT' } });
  });

  it.each<[string, Error & { code: string }, number]>([
    ['StoreError that stays', new StoreError(`NOAUTH: ${KEY}`, { ...named, transient: false }), 503],
    ['QuorumError', new QuorumError(`Too few: ${KEY}`, { ...named, votes: [KEY] }), 503],
    ['LockAbortedError of a shutdown', new LockAbortedError(`Closing: ${KEY}`, { ...named, reason: 'shutdown' }), 503],
  ])('does not name the key in the answer to a %s', async (_what, error, status) => {
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

  it('ends an answer that had begun already', async () => {
    const { ask, locks } = await serve('express', asAppFilter);
    await locks.acquire(KEY, LONG);
    expect(await ask('begun')).toMatchObject({ status: 200, text: 'begun' });
  });

  it.each([
    ['ends one of Express', { headersSent: true, end: jest.fn() }],
    ['leaves one of Fastify', { sent: true }],
  ])('without a host, %s that had begun already', (_what, reply) => {
    const status = jest.fn();
    const http = { getResponse: () => ({ ...reply, status }) };
    const host = { getType: () => 'http', switchToHttp: () => http } as unknown as ArgumentsHost;
    expect(new LockExceptionFilter().catch(new LockTimeoutError('Held', named), host)).toBeUndefined();
    expect(status).not.toHaveBeenCalled();
    if ('end' in reply) expect(reply.end).toHaveBeenCalledWith();
  });

  it('answers in the form of other contexts, and hands the error on where it knows none', async () => {
    const filter = new LockExceptionFilter();
    const error = new LockTimeoutError('Held', named);
    const catchIn = (type: string) => filter.catch(error, { getType: () => type } as unknown as ArgumentsHost);
    const refusal = { status: 'error', message: expect.stringContaining('Try again'), code: 'LOCK_TIMEOUT' };
    const answer = catchIn('rpc');
    expect(isObservable(answer)).toBe(true);
    await expect(lastValueFrom(answer as Observable<unknown>)).rejects.toEqual(refusal);
    expect(catchIn('graphql')).toMatchObject({ status: 423, response: { code: 'LOCK_TIMEOUT' } });
    expect(catchIn('another')).toBe(error);
    const emit = jest.fn();
    filter.catch(error, { getType: () => 'ws', switchToWs: () => ({ getClient: () => ({ emit }) }) } as unknown as ArgumentsHost);
    expect(emit).toHaveBeenCalledWith('exception', refusal);
    expect(JSON.stringify(emit.mock.calls)).not.toContain(SECRET);
  });
});

class Item {
  @ApiProperty({ example: 'apple' })
  sku!: string;
  @ApiProperty({ minimum: 1 })
  units!: number;
}

/** The same controller, under the same name, with its locks above or below, or without any. */
function stock(kind: Order | 'none') {
  const among = (options: DistributedLockOptions, ...others: MethodDecorator[]): MethodDecorator =>
    kind === 'none' ? applyDecorators(...others) : (lockAmong(kind, { ...LONG, ...options }, ...others) as MethodDecorator);

  @Controller('stock')
  class StockController {
    @among(
      { value: 'read', key: (id: string) => id },
      Get(':id'),
      ApiOperation({ summary: 'Reads', operationId: 'readStock' }),
      ApiQuery({ name: 'unit', enum: ['kg', 'piece'], required: false }),
      ApiOkResponse({ type: Item }),
      ApiResponse({ status: 423, description: 'Another is at it' }),
    )
    async read(@Param('id', ParseIntPipe) id: number, @Query('unit') unit?: string) {
      return { id, unit: unit ?? 'piece', key: key() };
    }

    @among({ value: 'add' }, Post(), HttpCode(202), ApiBody({ type: [Item] }))
    async add(@Body() items: Item[]): Promise<{ added: number; key: string }> {
      return { added: items.length, key: key() };
    }

    /** Nothing is said of it: all is inferred. */
    @among({ value: 'inferred' }, Post(':shelf/items'))
    async inferred(@Param('shelf') _shelf: string, @Query('fast') _fast: boolean, @Body() item: Item): Promise<Item> {
      return item;
    }
  }
  return StockController;
}

async function documentOf(adapter: Adapter, kind: Order | 'none') {
  const served = await serve(adapter, { controllers: [stock(kind)] }, {}, (app) => {
    const config = new DocumentBuilder().setTitle('Stock').build();
    SwaggerModule.setup('api', app, () => SwaggerModule.createDocument(app, config), { ui: false });
  });
  const { status, body } = await served.ask('api-json');
  expect(status).toBe(200);
  return { ...served, document: body as { paths: Record<string, Record<string, object>> } };
}

aboveAndBelow('HTTP', '@nestjs/swagger: @ApiOperation, @ApiResponse and inferred parameters, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('serves the same document as an app without locks, and locks once what it documents (%s)', async (adapter) => {
    const { document, ask, post, acquired } = await documentOf(adapter, order);
    expect(document).toEqual((await documentOf(adapter, 'none')).document);
    expect(document.paths['/stock/{id}']?.get).toMatchObject({
      operationId: 'readStock',
      parameters: expect.arrayContaining([expect.objectContaining({ name: 'id', in: 'path', schema: { type: 'number' } })]),
      responses: { 200: expect.anything(), 423: { description: 'Another is at it' } },
    });
    expect(document.paths['/stock/{shelf}/items']?.post).toMatchObject({
      parameters: [{ name: 'shelf' }, { name: 'fast', schema: { type: 'boolean' } }],
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } } },
    });
    expect((await ask('stock/7?unit=kg')).body).toEqual({ id: 7, unit: 'kg', key: 'read-7-locks' });
    expect(await post('stock', [{ sku: 'apple', units: 1 }])).toMatchObject({ status: 202, body: { added: 1, key: 'add-locks' } });
    expect(acquired).toEqual(['read-7-locks', 'add-locks']);
  });
});
