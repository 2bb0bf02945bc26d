import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  Get,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type ModuleMetadata,
  Param,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, REQUEST } from '@nestjs/core';
import { DistributedLock } from 'nestjs-distributed-lock';
import { count, Counter, expectOneAtATime, PATIENT } from './counter.js';
import { serve } from './http-app.js';
import { way } from './ways.js';

/** Can be each of them, and is locked itself, in a method that the one calls which Nest calls. */
@Injectable()
@Catch()
class Enhancer extends Counter {
  async canActivate() {
    return (await this.count()) > 0;
  }
  async transform(value: unknown) {
    await this.count();
    return value;
  }
  async intercept(_context: unknown, next: CallHandler) {
    await this.count();
    return next.handle();
  }
  async catch(_error: unknown, host: ArgumentsHost) {
    await this.count();
    host.switchToHttp().getResponse<{ json(body: unknown): void }>().json({ id: 'caught' });
  }
  async use(_request: unknown, _response: unknown, next: () => void) {
    await this.count();
    next();
  }
}
@Module({})
class WithMiddleware {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(Enhancer).forRoutes(PlainController);
  }
}

@Controller()
class PlainController {
  @Get(':id')
  get(@Param('id') id: string) {
    if (id === 'broken') throw new Error('broken');
    return { id };
  }
}
/** An app whose controller has this decorator. */
function controllerWith(decorator: ClassDecorator): ModuleMetadata {
  @decorator
  class Decorated extends PlainController {}
  return { controllers: [Controller()(Decorated) ?? Decorated] };
}

/** In each of these apps six requests at once are kept apart by the lock of the enhancer. */
const locksRequests = (id: string, answer: string, ...rows: [how: string, metadata: ModuleMetadata][]) =>
  it.each(rows)('locks %s', async (_how, metadata) => {
    const served = await serve('express', { controllers: [PlainController], ...metadata });
    await expectOneAtATime(served, { count: async () => expect((await served.ask(id)).body).toEqual({ id: answer }) });
  });

way('Enhancers', 'a guard', () => {
  locksRequests(
    'a',
    'a',
    ['APP_GUARD', { providers: [{ provide: APP_GUARD, useClass: Enhancer }] }],
    ['APP_GUARD from a factory', { providers: [{ provide: APP_GUARD, useFactory: () => new Enhancer() }] }],
    ['@UseGuards', controllerWith(UseGuards(Enhancer))],
  );
});

way('Enhancers', 'a pipe', () => {
  locksRequests(
    'a',
    'a',
    ['APP_PIPE', { providers: [{ provide: APP_PIPE, useClass: Enhancer }] }],
    ['@UsePipes', controllerWith(UsePipes(Enhancer))],
  );
});

way('Enhancers', 'an interceptor', () => {
  locksRequests(
    'a',
    'a',
    ['APP_INTERCEPTOR', { providers: [{ provide: APP_INTERCEPTOR, useClass: Enhancer }] }],
    ['@UseInterceptors', controllerWith(UseInterceptors(Enhancer))],
  );
});

way('Enhancers', 'an exception filter', () => {
  locksRequests(
    'broken',
    'caught',
    ['APP_FILTER', { providers: [{ provide: APP_FILTER, useClass: Enhancer }] }],
    ['@UseFilters', controllerWith(UseFilters(Enhancer))],
  );
});

way('Enhancers', 'a middleware', () => {
  locksRequests('a', 'a', ['it', { imports: [WithMiddleware] }]);
});

way('Providers', 'request scope', () => {
  const seen: unknown[] = [];
  beforeEach(() => seen.splice(0));

  @Injectable({ scope: Scope.REQUEST })
  class RequestCounter extends Counter {
    constructor(@Inject(REQUEST) request: { url: string }) {
      super();
      seen.push(request.url);
    }
  }
  @Controller()
  class OwnerController {
    constructor(@Inject(RequestCounter) private readonly counter: RequestCounter) {}
    @Get(':id')
    async count() {
      return { count: await this.counter.count() };
    }
  }
  @Controller({ scope: Scope.REQUEST })
  class RequestController {
    constructor(@Inject(REQUEST) request: { url: string }) {
      seen.push(request.url);
    }
    @Get(':id')
    @DistributedLock({ value: 'count', ...PATIENT })
    async count() {
      return { count: await count() };
    }
  }

  it.each([
    ['a provider that is injected into a controller', OwnerController],
    ['a controller itself', RequestController],
  ])('locks across the instances of several requests: %s', async (_what, controller) => {
    const served = await serve('express', { controllers: [controller], providers: [RequestCounter] });
    const ask = async (id: number) => expect((await served.ask(`${id}`)).status).toBe(200);
    await expectOneAtATime(served, { count: () => ask(1) }, { count: () => ask(2) });
    expect(seen.toSorted()).toEqual([...Array(3).fill('/1'), ...Array(3).fill('/2')]);
  });
});
