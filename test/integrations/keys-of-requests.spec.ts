// `paramLock` over what differs from request to request: each request would have a key of its own, and nothing would exclude it.
import {
  Body,
  Controller,
  createParamDecorator,
  Headers,
  Ip,
  Param,
  Post,
  Req,
  Session,
  UploadedFile,
  UploadedFiles,
  UseInterceptors,
} from '@nestjs/common';
import { Args, Context, Info, Int, Mutation, Parent, ResolveField, Resolver } from '@nestjs/graphql';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { FileInterceptor } from '@nestjs/platform-express';
import { ConnectedSocket, MessageBody, SubscribeMessage } from '@nestjs/websockets';
import { DistributedLock } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { Log } from '../nest/log.js';
import { SharedCounter } from '../support/shared-counter.js';
import { serveGraphql } from './graphql-app.js';
import { serve } from './http-app.js';
import { lockAmong, LONG } from './ways.js';

type Keyed = { paramLock: boolean | string[] } | { key: () => string };

/** What is warned about where the second parameter of a handler has this decorator. */
async function adviceOn(handles: MethodDecorator[], first: ParameterDecorator, second: ParameterDecorator, keyed: Keyed) {
  class Desk {
    @lockAmong('below', { value: 'pay', ...keyed }, ...handles)
    async pay(@first _first: object, @second _second: object) {}
  }
  const logger = new Log();
  await boot({ providers: [Desk] }, { logger });
  return logger.warnings;
}

type Row = [string, string, ParameterDecorator, boolean | string[]];

describe('paramLock in an HTTP handler', () => {
  /** Payments of one order, by clients that differ in a header that says nothing of the order. */
  async function payThrice(header: ParameterDecorator) {
    @Controller('orders')
    class Orders {
      readonly counter = new SharedCounter();
      @Post(':id/pay')
      @DistributedLock({ value: 'pay', paramLock: true, ...LONG })
      async pay(@Param('id') _id: string, @header _header: unknown) {
        await this.counter.increment();
      }
    }
    const logger = new Log();
    const { ask, get, acquired } = await serve('express', { controllers: [Orders] }, { logger, silence: ['NDL_SHUTDOWN_HOOKS'] });
    const pay = (client: string) => ask('orders/7/pay', { method: 'POST', headers: { 'x-client': client } });
    const answers = await Promise.all(['a', 'b', 'c'].map(pay));
    expect(answers).toMatchObject(Array(3).fill({ status: 201 }));
    return { warnings: logger.warnings, overlaps: get(Orders).counter.overlaps, keys: new Set(acquired).size };
  }

  it('makes a key of its own for each request where @Headers() is part of it, which is a warning at startup', async () => {
    const { warnings, keys } = await payThrice(Headers());
    expect(keys).toBe(3);
    const line =
      /^@DistributedLock\(\) on Orders\.pay: paramLock makes argument 1, @Headers\(\), part of the key, .*\[NDL_KEY_OF_REQUEST\]$/;
    expect(warnings).toEqual([expect.stringMatching(line)]);
  });

  it('excludes the requests for one thing where only one header, by its name, is part of the key', async () => {
    expect(await payThrice(Headers('x-shop'))).toEqual({ warnings: [], overlaps: 0, keys: 1 });
  });

  const upload = UseInterceptors(FileInterceptor('file'));
  it.each<Row>([
    ['all arguments, with @Ip()', '@Ip()', Ip(), true],
    ['all arguments, with @Session()', '@Session()', Session(), true],
    ['all arguments, with @Req()', '@Req()', Req(), true],
    ['all arguments, with @UploadedFile()', '@UploadedFile()', UploadedFile(), true],
    ['all arguments, with @UploadedFiles()', '@UploadedFiles()', UploadedFiles(), true],
    ['all arguments, with @UploadedFile() of one field', '@UploadedFile()', UploadedFile('scan'), true],
    ['@Ip() by its path', '@Ip()', Ip(), ['0.id', '1']],
    ['@Headers() by its path', '@Headers()', Headers(), ['1']],
    ['the headers of @Req() by their path', '@Req()', Req(), ['1.headers']],
  ])('is a warning: %s', async (_what, decorator, parameter, paramLock) => {
    const warnings = await adviceOn([Post('pay'), upload], Body(), parameter, { paramLock });
    expect(warnings).toEqual([expect.stringContaining(`argument 1, ${decorator}, part of the key`)]);
  });

  it.each<[string, ParameterDecorator, Keyed]>([
    ['a path of the body beside @Headers()', Headers(), { paramLock: ['0.id'] }],
    ['one header by its path', Headers(), { paramLock: ['1.x-shop'] }],
    ['the user in the session', Session(), { paramLock: ['1.userId'] }],
    ['a parameter of the route in @Req()', Req(), { paramLock: ['1.params.id'] }],
    ['a decorator of your own', createParamDecorator(() => 'user')(), { paramLock: true }],
    ['a key function beside @Ip()', Ip(), { key: () => 'one' }],
  ])('is none: %s', async (_what, parameter, keyed) => {
    expect(await adviceOn([Post('pay')], Body(), parameter, keyed)).toEqual([]);
  });

  it('is none in a method that handles no requests', async () => {
    expect(await adviceOn([], Body(), Headers(), { paramLock: true })).toEqual([]);
  });

  it.each(['above', 'below'] as const)('is a warning also by the defaults of the module, with the lock %s', async (order) => {
    @Controller()
    class Desk {
      @lockAmong(order, { value: 'pay' }, Post('pay'))
      async pay(@Headers() _headers: object) {}
    }
    const logger = new Log();
    await boot({ controllers: [Desk] }, { logger, defaults: { paramLock: true } });
    expect(logger.warnings).toHaveLength(1);
  });
});

const [message, event, field] = [MessagePattern('pay'), SubscribeMessage('pay'), ResolveField(() => Int)];
it.each<[string, MethodDecorator, ParameterDecorator, ParameterDecorator, boolean | string[], string[]]>([
  ['is a warning over @Ctx()', message, Payload(), Ctx(), true, ['@Ctx()']],
  ['is a warning over @Ctx() by its path', message, Payload(), Ctx(), ['1'], ['@Ctx()']],
  ['is none over a path of the payload', message, Payload(), Ctx(), ['0.id'], []],
  ['is a warning over @ConnectedSocket()', event, MessageBody(), ConnectedSocket(), true, ['@ConnectedSocket()']],
  ['is none over the id of a socket, which a path names', event, MessageBody(), ConnectedSocket(), ['1.id'], []],
  ['is a warning over @Info()', field, Parent(), Info(), true, ['@Info()']],
  ['is none over @Parent() and @Args()', field, Parent(), Args('units'), true, []],
])('paramLock in a handler of messages, or of a field, %s', async (_what, handles, first, second, paramLock, warned) => {
  const warnings = warned.map((decorator) => expect.stringContaining(`argument 1, ${decorator}, part of the key`) as string);
  expect(await adviceOn([handles], first, second, { paramLock })).toEqual(warnings);
});

@Resolver()
class Payments {
  @Mutation(() => Int)
  @DistributedLock({ value: 'loose', paramLock: true })
  async loose(@Args('id', { type: () => Int }) id: number, @Context() _context: object) {
    return id;
  }
  @Mutation(() => Int)
  @DistributedLock({ value: 'tenant', paramLock: true })
  async tenant(@Args('id', { type: () => Int }) id: number, @Context('tenant') _tenant: string) {
    return id;
  }
}

it('paramLock in a resolver is a warning over @Context(), which no call can have in its key, and none over one of its fields', async () => {
  const logger = new Log();
  const { query, acquired } = await serveGraphql(
    { providers: [Payments] },
    { logger, silence: ['NDL_SHUTDOWN_HOOKS'] },
    { context: () => ({ tenant: 'eu' }) },
  );
  expect(logger.warnings).toEqual([expect.stringMatching(/on Payments\.loose: paramLock makes argument 1, @Context\(\), part of the key/)]);
  expect((await query('mutation { loose(id: 7) }')).errors).toHaveLength(1);
  expect((await query('mutation { a: tenant(id: 7) b: tenant(id: 7) }')).data).toEqual({ a: 7, b: 7 });
  expect([acquired.length, new Set(acquired).size]).toEqual([2, 1]);
});
