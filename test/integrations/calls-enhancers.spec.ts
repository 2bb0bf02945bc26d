import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestMiddleware,
  Param,
  type PipeTransform,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { DistributedLock } from 'nestjs-distributed-lock';
import { defer, lastValueFrom, Observable } from 'rxjs';
import { boot, listen } from '../nest/boot.js';
import { Counter, expectOneAtATime, PATIENT } from './counter.js';
import { key, way } from './place.js';

/** Each is locked itself, in the method that Nest calls or in one that this calls. */
@Injectable()
class CountingGuard extends Counter implements CanActivate {
  async canActivate(_context: ExecutionContext) {
    return (await this.count()) > 0;
  }
}
@Injectable()
class CountingPipe extends Counter implements PipeTransform {
  async transform(value: unknown) {
    await this.count();
    return value;
  }
}
@Injectable()
class CountingInterceptor extends Counter implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler) {
    await this.count();
    return next.handle();
  }
}
@Catch()
class CountingFilter extends Counter implements ExceptionFilter {
  async catch(_error: unknown, host: ArgumentsHost) {
    await this.count();
    host.switchToHttp().getResponse<{ json(body: unknown): void }>().json({ id: 'caught' });
  }
}
@Injectable()
class CountingMiddleware extends Counter implements NestMiddleware {
  async use(_request: unknown, _response: unknown, next: () => void) {
    await this.count();
    next();
  }
}
@Module({})
class WithMiddleware {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(CountingMiddleware).forRoutes(PlainController);
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
/** A controller with this decorator. */
function controllerWith(decorator: ClassDecorator) {
  @decorator
  class Decorated extends PlainController {}
  return { controllers: [Controller()(Decorated) ?? Decorated] };
}

/** Six requests at once to each of these controllers' routes; `'caught'` is the answer of the filter. */
async function proveRequests(metadata: Parameters<typeof boot>[0], id = 'a'): Promise<void> {
  const booted = await boot({ controllers: [PlainController], ...metadata });
  const url = await listen(booted.app);
  const ask = async () => expect(await (await fetch(`${url}/${id}`)).json()).toEqual({ id: id === 'broken' ? 'caught' : id });
  await expectOneAtATime(booted, { count: ask });
}

way('Enhancers', 'a guard', () => {
  it.each<[string, Parameters<typeof boot>[0]]>([
    ['as APP_GUARD', { providers: [{ provide: APP_GUARD, useClass: CountingGuard }] }],
    ['as APP_GUARD from a factory', { providers: [{ provide: APP_GUARD, useFactory: () => new CountingGuard() }] }],
    ['with @UseGuards', controllerWith(UseGuards(CountingGuard))],
  ])('is locked %s', (_how, metadata) => proveRequests(metadata));

  it('may be locked in canActivate itself', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class LockedGuard implements CanActivate {
      @DistributedLock({ value: 'guard', ...PATIENT })
      async canActivate(context: ExecutionContext) {
        seen.push(key());
        return context.switchToHttp().getRequest<{ url: string }>().url !== '/no';
      }
    }
    const { app, acquired } = await boot(controllerWith(UseGuards(LockedGuard)));
    const url = await listen(app);
    expect([(await fetch(`${url}/a`)).status, (await fetch(`${url}/no`)).status]).toEqual([200, 403]);
    expect([seen, acquired]).toEqual([Array(2).fill('guard-locks'), Array(2).fill('guard-locks')]);
  });

  it('never runs unlocked where it is made with plain new', async () => {
    const { app, acquired } = await boot(controllerWith(UseGuards(new CountingGuard())));
    expect((await fetch(`${await listen(app)}/a`)).status).toBe(500);
    expect(acquired).toEqual([]);
  });
});

way('Enhancers', 'a pipe', () => {
  it('is locked as APP_PIPE', () => proveRequests({ providers: [{ provide: APP_PIPE, useClass: CountingPipe }] }));
  it('is locked with @UsePipes', () => proveRequests(controllerWith(UsePipes(CountingPipe))));
});

way('Enhancers', 'an interceptor', () => {
  it('is locked as APP_INTERCEPTOR', () => proveRequests({ providers: [{ provide: APP_INTERCEPTOR, useClass: CountingInterceptor }] }));
  it('is locked with @UseInterceptors', () => proveRequests(controllerWith(UseInterceptors(CountingInterceptor))));

  it('may hold the lock in intercept itself, for as long as the handler runs', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class LockedInterceptor implements NestInterceptor {
      @DistributedLock({ value: 'around', ...PATIENT })
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        return defer(async () => {
          const result: unknown = await lastValueFrom(next.handle());
          seen.push(key());
          return result;
        });
      }
    }
    const { app, acquired } = await boot(controllerWith(UseInterceptors(LockedInterceptor)));
    expect(await (await fetch(`${await listen(app)}/a`)).json()).toEqual({ id: 'a' });
    expect([seen, acquired]).toEqual([['around-locks'], ['around-locks']]);
  });
});

way('Enhancers', 'an exception filter', () => {
  it('is locked as APP_FILTER', () => proveRequests({ providers: [{ provide: APP_FILTER, useClass: CountingFilter }] }, 'broken'));
  it('is locked with @UseFilters', () => proveRequests(controllerWith(UseFilters(CountingFilter)), 'broken'));
});

way('Enhancers', 'a middleware', () => {
  it('is locked', () => proveRequests({ imports: [WithMiddleware] }));
});
