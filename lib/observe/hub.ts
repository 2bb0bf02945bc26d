import type { LockEvent } from '../core/model/events.js';
import type { ObservedRequest, TelemetryObserver, TelemetrySource } from '../core/model/telemetry.js';
import type { GaugeName, RecordedName } from './instruments.js';
import { Names, readGauge, type Reading } from './gauges.js';

/** Attributes of one time series. */
export type Attributes = Readonly<Record<string, string>>;

/** Where measurements go: a registry of metrics. */
export type Sink = (name: RecordedName, value: number, attributes: Attributes) => void;

const MS = 1000;

/** Turns the events of locks into measurements, for one registry. All {@link Locks} that report to it share its names and its gauges. */
export class MetricsHub {
  private readonly sources = new Set<TelemetrySource>();
  private readonly names = { labels: new Names('labels of locks'), elections: new Names('elections') };

  constructor(private readonly sink: Sink) {}

  observe(source: TelemetrySource): TelemetryObserver {
    this.sources.add(source);
    const forget = this.listen(source);
    return {
      request: ({ kind, operation, outcome, duration }: ObservedRequest) =>
        this.sink('distributed_lock.request.duration', duration / MS, { kind, store: source.store, operation, outcome }),
      stop: () => {
        for (const each of forget) each();
        this.sources.delete(source);
      },
    };
  }

  /** Counts now. */
  read(name: GaugeName): Reading[] {
    return readGauge(name, this.sources, this.names);
  }

  private listen(source: TelemetrySource): (() => void)[] {
    const { sink, names } = this;
    const { store } = source;
    const lockOf = ({ label }: LockEvent): string => names.labels.of(source, label);
    // Literals: prom-client takes three times as long for an object that was made by spreading another (bench/telemetry.mjs).
    const waited = (event: LockEvent & { readonly waited: number }, outcome: string): void =>
      sink('distributed_lock.wait.duration', event.waited / MS, { lock: lockOf(event), kind: event.kind, store, outcome });
    const held = (event: LockEvent & { readonly held: number; readonly limited?: boolean }, result: string): void => {
      const outcome = event.limited ? 'limited' : result;
      sink('distributed_lock.hold.duration', event.held / MS, { lock: lockOf(event), kind: event.kind, store, outcome });
    };
    return [
      source.on('acquired', (event) => {
        waited(event, 'acquired');
        sink('distributed_lock.grants', 1, { lock: lockOf(event), kind: event.kind, store, via: event.via });
      }),
      source.on('timeout', (event) => waited(event, event.waitTimeout === 0 ? 'refused' : 'timeout')),
      source.on('aborted', (event) => waited(event, 'aborted')),
      source.on('failed', (event) => waited(event, 'outage')),
      source.on('released', (event) => held(event, 'released')),
      source.on('handedOver', (event) => held(event, 'handedOver')),
      source.on('lost', (event) => {
        sink('distributed_lock.lost', 1, { lock: lockOf(event), kind: event.kind, store, reason: event.reason });
        // The hold of a lease that was found lost after its release has been counted.
        if (!event.afterRelease) held(event, event.reason === 'forced' ? 'forced' : 'lost');
      }),
      source.on('renewed', ({ kind, margin }) => sink('distributed_lock.renewal.margin', margin, { kind, store })),
    ];
  }
}
