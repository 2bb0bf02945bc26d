import '../support/virtual-time.js';
import { Scope, type Type } from '@nestjs/common';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  QueryBus,
  QueryHandler,
  UnhandledExceptionBus,
  type ICommandHandler,
  type IEventHandler,
  type IQueryHandler,
} from '@nestjs/cqrs';
import { DistributedLock, LockTimeoutError } from 'nestjs-distributed-lock';
import { boot, type Booted } from '../nest/boot.js';
import { COUNT_KEY, count, expectOneAtATime, PATIENT } from './counter.js';
import { LONG, way } from './ways.js';

const imports = [CqrsModule.forRoot()];
const WAYS = [
  ['a handler that is made once', Scope.DEFAULT],
  ['a handler of request scope', Scope.REQUEST],
] as const;

class Count {}
class Counted {
  constructor(readonly done: () => void) {}
}

/** Six messages at once: the handlers of all of them run under one lock, one after the other. */
async function expectOneAfterTheOther(handler: Type, send: (booted: Booted) => Promise<unknown>) {
  const booted = await boot({ imports, providers: [handler] });
  await expectOneAtATime(booted, { count: () => send(booted) });
}

way('CQRS', 'execute of a @CommandHandler', () => {
  it.each(WAYS)('is locked in %s', async (_what, scope) => {
    @CommandHandler(Count, { scope })
    class CountHandler implements ICommandHandler<Count> {
      @DistributedLock({ value: 'count', ...PATIENT })
      async execute() {
        return count();
      }
    }
    await expectOneAfterTheOther(CountHandler, ({ app }) => app.get(CommandBus).execute(new Count()));
  });
});

way('CQRS', 'execute of a @QueryHandler', () => {
  it.each(WAYS)('is locked in %s', async (_what, scope) => {
    @QueryHandler(Count, { scope })
    class CountHandler implements IQueryHandler<Count> {
      @DistributedLock({ value: 'count', ...PATIENT })
      async execute() {
        return count();
      }
    }
    await expectOneAfterTheOther(CountHandler, ({ app }) => app.get(QueryBus).execute(new Count()));
  });
});

way('CQRS', 'handle of an @EventsHandler', () => {
  it.each(WAYS)('is locked in %s', async (_what, scope) => {
    @EventsHandler(Counted, { scope })
    class CountedHandler implements IEventHandler<Counted> {
      @DistributedLock({ value: 'count', ...PATIENT })
      async handle({ done }: Counted) {
        await count();
        done();
      }
    }
    await expectOneAfterTheOther(
      CountedHandler,
      ({ app }) => new Promise<void>((resolve) => void app.get(EventBus).publish(new Counted(resolve))),
    );
  });

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
