import { LockTimeoutError, type Locks, type Term } from 'nestjs-distributed-lock/core';
import type { ResolvedOptions } from '../../lib/core/model/options.js';
import { patienceOf } from '../../lib/core/waiting/backoff.js';
import type { Lifecycle } from '../../lib/core/holding/lifecycle.js';
import { runHolding } from '../../lib/core/holding/call-chain.js';
import type { HeldLease } from '../../lib/core/holding/held-lease.js';
import type { KeyLock } from '../../lib/primitives/key-lock.js';
import { LeaderElection } from '../../lib/primitives/leader-election.js';
import { LockBase } from '../../lib/primitives/lock.js';
import { gate } from './gate.js';
import { MUTEX, type Kind } from './kinds.js';

/** A lock whose lease is the term of a leader: to acquire is to be elected, and to release is to end the work. */
class LeaderLock extends LockBase<HeldLease> {
  constructor(
    private readonly locks: Locks,
    private readonly mutex: KeyLock,
    defaults: ResolvedOptions,
  ) {
    super(mutex.key, defaults);
  }

  take(options: ResolvedOptions, _guardsBody: boolean): Promise<HeldLease> {
    const { runtime } = this.locks as unknown as { runtime: Lifecycle };
    const { keyTimeout, retryInterval, maxHold } = options;
    const election = new LeaderElection(this.mutex, runtime, options, { keyTimeout, retryInterval, maxHold });
    return new Promise((resolve, reject) => {
      const callOff = this.patience(options);
      const done = gate();
      const running = election.run(
        (term) => {
          callOff.forget();
          resolve(
            released(term as Term & HeldLease, async () => {
              const answer = await term.release();
              // It would stand again.
              if (!answer) void election.resign();
              done.open();
              await running.catch(() => undefined);
              return answer;
            }),
          );
          return done.passed;
        },
        { signal: callOff.signal },
      );
      running.catch((error: unknown) => {
        callOff.forget();
        reject(callOff.isOver() ? new LockTimeoutError('Not elected in time.', { key: this.key }) : error);
      });
    });
  }

  holding<T>(lease: HeldLease, work: () => T): T {
    return runHolding(lease, work);
  }

  /** A candidate has none: it is called off when it has waited for so long. */
  private patience({ signal, ...options }: ResolvedOptions): { signal: AbortSignal; isOver(): boolean; forget(): void } {
    const controller = new AbortController();
    const wait = patienceOf(options);
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const stop = this.locks.on('waiting', ({ key }) => {
      if (key !== this.key || wait === Infinity || timer) return;
      timer = setTimeout(() => {
        isOver = true;
        controller.abort();
      }, wait);
    });
    const onAbort = () => controller.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    return {
      signal: controller.signal,
      isOver: () => isOver,
      forget: () => {
        clearTimeout(timer);
        stop();
        signal?.removeEventListener('abort', onAbort);
      },
    };
  }
}

function released(term: HeldLease, release: () => Promise<boolean>): HeldLease {
  let answer: Promise<boolean> | undefined;
  return new Proxy<HeldLease>(term, {
    get(lease, name) {
      if (name === 'release') return () => (answer ??= release());
      const value: unknown = Reflect.get(lease, name, lease);
      return typeof value === 'function' ? (value.bind(lease) as unknown) : value;
    },
  });
}

export const TERM: Kind = {
  ...MUTEX,
  name: "leader's term",
  isElected: true,
  lockOf: (locks, key) => new LeaderLock(locks, locks.mutex(key) as KeyLock, (locks as unknown as { defaults: ResolvedOptions }).defaults),
};
