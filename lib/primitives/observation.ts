import type { LocksOptions } from '../core/model/locks-options.js';
import type { CallTrace, CallTracing, ObservedRequest, TelemetryObserver } from '../core/model/telemetry.js';
import type { LockStore } from '../core/store/lock-store.js';
import { timedStore } from '../core/store/timed-driver.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import type { ResolvedOptions } from '../core/model/options.js';
import type { Lease } from '../core/model/lease.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import { LocksSource } from '../core/waiting/telemetry-source.js';
import { KeyLock } from './key-lock.js';

/** The store and the locks that one `Locks` uses: without telemetry they are not wrapped, so that it costs nothing. */
export interface Observation {
  readonly store: LockStore;
  readonly Lock: typeof KeyLock;
  stop(): void;
}

export function observation(store: LockStore, queues: LockQueues, { telemetry, namespace = '' }: LocksOptions): Observation {
  if (telemetry === undefined) return { store, Lock: KeyLock, stop: () => undefined };
  const source = new LocksSource(store, queues, namespace);
  const observers: TelemetryObserver[] = [];
  const stop = (): void => {
    for (const observer of observers) observer.stop();
  };
  try {
    for (const each of [telemetry].flat()) observers.push(each.observe(source));
  } catch (error) {
    stop();
    throw error;
  }
  const requests = observers.filter(hearsRequests);
  const calls = observers.find((observer) => observer.calls)?.calls;
  const hear = (request: ObservedRequest): void => {
    for (const observer of requests) {
      try {
        observer.request(request);
      } catch (error) {
        source.warn(`A telemetry adapter failed: ${String(error)}`);
      }
    }
  };
  return {
    store: requests.length > 0 ? timedStore(store, hear) : store,
    Lock: calls ? tracedLock(calls) : KeyLock,
    stop,
  };
}

type HearsRequests = TelemetryObserver & Required<Pick<TelemetryObserver, 'request'>>;

function hearsRequests(observer: TelemetryObserver): observer is HearsRequests {
  return observer.request !== undefined;
}

/** A lock whose calls are followed. The body of a call runs in the context that the tracing gives it. */
function tracedLock(calls: CallTracing): typeof KeyLock {
  return class TracedLock extends KeyLock {
    protected override traceOf({ label }: ResolvedOptions): CallTrace | undefined {
      return calls.begin({ key: this.key, kind: this.kind.name, label });
    }

    override holding<T>(lease: HeldLease, work: () => T, shown?: Lease): T {
      return calls.run(lease, () => super.holding(lease, work, shown));
    }
  };
}
