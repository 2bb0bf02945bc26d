import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable, type Subscriber } from 'rxjs';
import { type OpenCall, wrongReturn } from './locked-return.js';

/**
 * An async iterable that takes the lock when it is first asked for an item and holds it until it ends or its consumer leaves. The method's own
 * code runs inside the call chain, its consumer outside.
 */
export async function* lockedIterable(open: OpenCall, proceed: () => unknown, where: string): AsyncGenerator<unknown, unknown, unknown> {
  const session = await Session.begin(open, proceed, where);
  if (!session.iterator) return yield* fallbackOf(session.fallback);
  try {
    let step = await session.ask('next', undefined);
    while (!step.done) {
      let sent: unknown;
      let failure: { error: unknown } | undefined;
      try {
        sent = yield step.value;
      } catch (error) {
        failure = { error };
      }
      step = failure ? await session.ask('throw', failure.error) : await session.ask('next', sent);
    }
    await session.end(step.value);
    return step.value as unknown;
  } finally {
    await session.leave();
  }
}

/** What `onTimeout` gave instead: items, one item, or nothing. */
async function* fallbackOf(result: unknown): AsyncGenerator<unknown, undefined> {
  if (typeof result === 'object' && result !== null && (Symbol.asyncIterator in result || Symbol.iterator in result)) {
    yield* result as AsyncIterable<unknown>;
  } else if (result !== undefined) yield result;
  return undefined;
}

/** One iteration: the lock is held while the interceptor's Observable is subscribed to. */
class Session {
  iterator: AsyncIterator<unknown> | undefined;
  fallback: unknown;
  private inside: <T>(work: () => T) => T = (work) => work();
  private holder: Subscriber<unknown> | undefined;
  private readonly settled: Promise<void>;
  private opened: () => void = () => undefined;

  static async begin(open: OpenCall, proceed: () => unknown, where: string): Promise<Session> {
    const session = new Session(open, proceed, where);
    await Promise.race([new Promise<void>((resolve) => (session.opened = resolve)), session.settled]);
    return session;
  }

  private constructor(open: OpenCall, proceed: () => unknown, where: string) {
    this.settled = new Promise((resolve, reject) => {
      open(() => this.iteration(proceed, where)).subscribe({
        next: (value) => (this.fallback = value),
        error: reject,
        complete: resolve,
      });
    });
    // Whoever ends the session waits for it; until then an error is not lost.
    this.settled.catch(() => undefined);
  }

  /** Runs the method's own code inside the call chain. */
  async ask(verb: 'next' | 'throw' | 'return', value: unknown): Promise<IteratorResult<unknown>> {
    const iterator = this.iterator as AsyncIterator<unknown>;
    try {
      if (verb === 'next') return await this.inside(() => iterator.next(value));
      if (iterator[verb]) return await this.inside(() => iterator[verb]?.(value) as Promise<IteratorResult<unknown>>);
      if (verb === 'throw') throw value;
      return { done: true, value };
    } catch (error) {
      this.holder?.error(error);
      await this.settled;
      throw error;
    }
  }

  async end(result: unknown): Promise<void> {
    const { holder } = this;
    this.holder = undefined;
    holder?.next(result);
    holder?.complete();
    await this.settled;
  }

  /** The consumer does not want more. */
  async leave(): Promise<void> {
    if (!this.holder || this.holder.closed) return;
    await this.ask('return', undefined);
    await this.end(undefined);
  }

  private iteration(proceed: () => unknown, where: string): Observable<unknown> {
    return new Observable((holder) => {
      const result = proceed();
      if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) throw wrongReturn(result, where, 'iterable');
      this.iterator = (result as AsyncIterable<unknown>)[Symbol.asyncIterator]();
      this.inside = AsyncLocalStorage.snapshot();
      this.holder = holder;
      this.opened();
    });
  }
}
