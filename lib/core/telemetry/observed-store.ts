import type { Engine } from '../engine.js';
import type { LocksOptions } from '../model/locks-options.js';
import type { TelemetryObserver } from '../model/telemetry.js';
import type { LockStore } from '../store/lock-store.js';
import { LocksSource } from './locks-source.js';
import { timedStore } from './timed-driver.js';

/** The store whose drivers are to be used: with telemetry they measure each request, without it they are not wrapped. */
export function observed(engine: Engine, telemetry: LocksOptions['telemetry']): LockStore {
  const { store, runtime } = engine;
  if (telemetry === undefined) return store;
  const source = new LocksSource(engine);
  const observers: TelemetryObserver[] = [];
  // A telemetry adapter that fails must not keep the store from being closed.
  const stop = (): void => {
    for (const observer of observers) guarded(() => observer.stop());
  };
  const guarded = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      source.warn(`A telemetry adapter failed: ${String(error)}`);
    }
  };
  try {
    for (const each of [telemetry].flat()) observers.push(each.observe(source));
  } catch (error) {
    stop();
    throw error;
  }
  engine.atEnd.push(stop);
  runtime.tracing = observers.find((observer) => observer.calls)?.calls;
  const hearers = observers.flatMap((observer) => observer.request?.bind(observer) ?? []);
  if (hearers.length === 0) return store;
  return timedStore(store, (request) => {
    for (const hear of hearers) guarded(() => hear(request));
  });
}
