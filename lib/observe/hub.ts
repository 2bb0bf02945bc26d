import type { LockEvent } from '../core/model/events.js';
import type { ObservedRequest, TelemetryObserver, TelemetrySource } from '../core/model/telemetry.js';
import type { GaugeName, RecordedName } from './instruments.js';
import { LagWatch } from './lag-watch.js';
import { readGauge, type Reading } from './gauges.js';
import { Names, Series, type Attributes } from './series.js';

/** Where measurements go: a registry of metrics. */
export type Sink = (name: RecordedName, value: number, attributes: Attributes) => void;

const NOTHING: Attributes = {};
const MS = 1000;

/** Turns the events of locks into measurements, for one registry. All {@link Locks} that report to it share its names and its gauges. */
export class Hub {
  private readonly sources = new Set<TelemetrySource>();
  private readonly labels = new Names('labels of locks');
  private readonly elections = new Names('elections');
  private readonly series = new Series();
  private readonly lag = new LagWatch((seconds) => this.sink('distributed_lock.event_loop.lag', seconds, NOTHING));

  constructor(private readonly sink: Sink) {}

  observe(source: TelemetrySource): TelemetryObserver {
    this.sources.add(source);
    this.lag.start();
    const forget = this.listen(source);
    return {
      request: (request) => this.request(source.store, request),
      stop: () => {
        for (const each of forget) each();
        this.sources.delete(source);
        if (this.sources.size === 0) this.lag.stop();
      },
    };
  }

  /** Counts now. */
  read(name: GaugeName): Reading[] {
    return readGauge(name, this.sources, this.labels, this.elections);
  }

  private listen(source: TelemetrySource): (() => void)[] {
    const { sink } = this;
    const of = (event: LockEvent, name: string, value: string): Attributes => this.ofCall(source, event, name, value);
    const waited = (event: LockEvent & { readonly waited: number }, outcome: string): void =>
      sink('distributed_lock.wait.duration', event.waited / MS, of(event, 'outcome', outcome));
    const held = (event: LockEvent & { readonly held: number; readonly limited: boolean }, outcome: string): void =>
      sink('distributed_lock.hold.duration', event.held / MS, of(event, 'outcome', event.limited ? 'limited' : outcome));
    return [
      source.on('acquired', (event) => {
        waited(event, 'acquired');
        sink('distributed_lock.grants', 1, of(event, 'via', event.via));
      }),
      source.on('timeout', (event) => waited(event, event.waitTimeout === 0 ? 'refused' : 'timeout')),
      source.on('aborted', (event) => waited(event, 'aborted')),
      source.on('failed', (event) => waited(event, 'outage')),
      source.on('released', (event) => held(event, 'released')),
      source.on('lost', (event) => {
        sink('distributed_lock.lost', 1, of(event, 'reason', event.reason));
        // The hold of a lease that was found lost after its release has been counted.
        if (!event.afterRelease) held(event, event.reason === 'forced' ? 'forced' : 'lost');
      }),
      source.on('renewed', ({ kind, margin }) => {
        const { store } = source;
        sink(
          'distributed_lock.renewal.margin',
          margin,
          this.series
            .with('margin')
            .with(store)
            .with(kind)
            .as(() => ({ kind, store })),
        );
      }),
    ];
  }

  private ofCall(source: TelemetrySource, { label, kind }: LockEvent, name: string, value: string): Attributes {
    const { store } = source;
    const lock = this.labels.of(label, (message) => source.warn(message));
    const series = this.series.with(name).with(store).with(lock).with(kind).with(value);
    return series.as(() => ({ lock, kind, store, [name]: value }));
  }

  private request(store: string, { kind, operation, outcome, duration }: ObservedRequest): void {
    const series = this.series.with('request').with(store).with(kind).with(operation).with(outcome);
    this.sink(
      'distributed_lock.request.duration',
      duration / MS,
      series.as(() => ({ kind, store, operation, outcome })),
    );
  }
}
