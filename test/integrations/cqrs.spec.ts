import '../support/virtual-time.js';
import { Scope, type INestApplication, type InjectableOptions, type Type } from '@nestjs/common';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  QueryBus,
  QueryHandler,
  UnhandledExceptionBus,
  type IEventHandler,
} from '@nestjs/cqrs';
import { DistributedLock, LockTimeoutError } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { COUNT_KEY, count, expectOneAtATime, PATIENT } from './counter.js';
import { LONG, way } from './ways.js';

const imports = [CqrsModule.forRoot()];

class Count {}
class Counted {
  constructor(readonly done: () => void) {}
}

/** Six messages at once: the handlers of all of them run under one lock, one after the other. */
function isLocked(handles: (options: InjectableOptions) => ClassDecorator, send: (app: INestApplication) => Promise<unknown>): void {
  it.each([
    ['a handler that is made once', Scope.DEFAULT],
    ['a handler of request scope', Scope.REQUEST],
  ])('is locked in %s', async (_what, scope) => {
    @handles({ scope })
    class Handler {
      @DistributedLock({ value: 'count', ...PATIENT })
      async execute() {
        return count();
      }
      @DistributedLock({ value: 'count', ...PATIENT })
      async handle({ done }: Counted) {
        await count();
        done();
      }
    }
    const booted = await boot({ imports, providers: [Handler as Type] });
    await expectOneAtATime(booted, { count: () => send(booted.app) });
  });
}

way('CQRS', 'execute of a @CommandHandler', () => {
  isLocked(
    (options) => CommandHandler(Count, options),
    (app) => app.get(CommandBus).execute(new Count()),
  );
});

way('CQRS', 'execute of a @QueryHandler', () => {
  isLocked(
    (options) => QueryHandler(Count, options),
    (app) => app.get(QueryBus).execute(new Count()),
  );
});

way('CQRS', 'handle of an @EventsHandler', () => {
  isLocked(
    (options) => EventsHandler(Counted, options),
    (app) => new Promise<void>((resolve) => void app.get(EventBus).publish(new Counted(resolve))),
  );

  it('reports a key that is taken to the UnhandledExceptionBus, as no caller waits for it', async () => {
    const body = jest.fn();
    @EventsHandler(Counted)
    class CountedHandler implements IEventHandler<Counted> {
      @DistributedLock({ value: 'count', waitTimeout: 0 })
      async handle() {
        body();
      }
    }
    const { app, locks } = await boot({ imports, providers: [CountedHandler] });
    await locks.acquire(COUNT_KEY, LONG);
    const unhandled = new Promise((resolve) => app.get(UnhandledExceptionBus).subscribe(resolve));
    const event = new Counted(body);
    app.get(EventBus).publish(event);
    expect(await unhandled).toMatchObject({ cause: event, exception: expect.any(LockTimeoutError) });
    expect(body).not.toHaveBeenCalled();
  });
});
