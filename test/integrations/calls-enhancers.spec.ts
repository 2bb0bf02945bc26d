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
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { defer, lastValueFrom, Observable } from 'rxjs';
import { boot, listen } from '../nest/boot.js';
import { Counter, expectOneAtATime, PATIENT } from './counter.js';
import { way } from './place.js';

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

@Controller()
class PlainController {
  @Get(':id')
  get(@Param('id') id: string) {
    if (id === 'broken') throw new Error('broken');
    return { id };
  }
}

/** Six requests at once to each of these controllers' routes; `'caught'` is the answer of the filter. */
async function proveRequests(metadata: Parameters<typeof boot>[0], id = 'a'): Promise<void> {
  const booted = await boot({ controllers: [PlainController], ...metadata });
  const url = await listen(booted.app);
  const ask = async () => expect(await (await fetch(`${url}/${id}`)).json()).toEqual({ id: id === 'broken' ? 'caught' : id });
  await expectOneAtATime(booted, { count: ask });
}

way('Enhancers', 'a guard', () => {
  it('is locked as APP_GUARD', () => proveRequests({ providers: [{ provide: APP_GUARD, useClass: CountingGuard }] }));

  it('is locked as APP_GUARD from a factory', () =>
    proveRequests({ providers: [{ provide: APP_GUARD, useFactory: () => new CountingGuard() }] }));

  it('is locked with @UseGuards', () => {
    @UseGuards(CountingGuard)
    class Guarded extends PlainController {}
    return proveRequests({ controllers: [Controller()(Guarded) ?? Guarded] });
  });

  it('may be locked in canActivate itself', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class LockedGuard implements CanActivate {
      @DistributedLock({ value: 'guard', ...PATIENT })
      async canActivate(context: ExecutionContext) {
        seen.push(currentLease()?.key);
        return context.switchToHttp().getRequest<{ url: string }>().url !== '/no';
      }
    }
    const { app, acquired } = await boot({ controllers: [PlainController], providers: [{ provide: APP_GUARD, useClass: LockedGuard }] });
    const url = await listen(app);
    expect([(await fetch(`${url}/yes`)).status, (await fetch(`${url}/no`)).status]).toEqual([200, 403]);
    expect(seen).toEqual(['guard-locks', 'guard-locks']);
    expect(acquired).toEqual(seen);
  });

  it('never runs unlocked where it is made with plain new', async () => {
    @UseGuards(new CountingGuard())
    class Guarded extends PlainController {}
    const { app, acquired } = await boot({ controllers: [Controller()(Guarded) ?? Guarded] });
    expect((await fetch(`${await listen(app)}/a`)).status).toBe(500);
    expect(acquired).toEqual([]);
  });
});

way('Enhancers', 'a pipe', () => {
  it('is locked as APP_PIPE', () => proveRequests({ providers: [{ provide: APP_PIPE, useClass: CountingPipe }] }));

  it('is locked at a parameter', () => {
    @Controller()
    class Piped {
      @Get(':id')
      get(@Param('id', CountingPipe) id: string) {
        return { id };
      }
    }
    return proveRequests({ controllers: [Piped] });
  });
});

way('Enhancers', 'an interceptor', () => {
  it('is locked as APP_INTERCEPTOR', () => proveRequests({ providers: [{ provide: APP_INTERCEPTOR, useClass: CountingInterceptor }] }));

  it('is locked with @UseInterceptors', () => {
    @UseInterceptors(CountingInterceptor)
    class Intercepted extends PlainController {}
    return proveRequests({ controllers: [Controller()(Intercepted) ?? Intercepted] });
  });

  it('may hold the lock in intercept itself, for as long as the handler runs', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class LockedInterceptor implements NestInterceptor {
      @DistributedLock({ value: 'around', ...PATIENT })
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        return defer(async () => {
          const result: unknown = await lastValueFrom(next.handle());
          seen.push(currentLease()?.key);
          return result;
        });
      }
    }
    const providers = [{ provide: APP_INTERCEPTOR, useClass: LockedInterceptor }];
    const { app, acquired } = await boot({ controllers: [PlainController], providers });
    expect(await (await fetch(`${await listen(app)}/a`)).json()).toEqual({ id: 'a' });
    expect([seen, acquired]).toEqual([['around-locks'], ['around-locks']]);
  });
});

way('Enhancers', 'an exception filter', () => {
  it('is locked as APP_FILTER', () => proveRequests({ providers: [{ provide: APP_FILTER, useClass: CountingFilter }] }, 'broken'));

  it('is locked with @UseFilters', () => {
    @UseFilters(CountingFilter)
    class Filtered extends PlainController {}
    return proveRequests({ controllers: [Controller()(Filtered) ?? Filtered] }, 'broken');
  });
});

way('Enhancers', 'a middleware', () => {
  it('is locked', () => {
    @Module({})
    class WithMiddleware {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(CountingMiddleware).forRoutes(PlainController);
      }
    }
    return proveRequests({ imports: [WithMiddleware] });
  });
});
