import type { ObservedCall, TelemetrySource } from '../core/model/telemetry.js';
import type { GaugeName } from './instruments.js';
import type { Attributes, Names } from './series.js';

/** The value of one time series. */
export interface Reading {
  readonly attributes: Attributes;
  readonly value: number;
}

/** Counts now, over all sources. Series of which there is nothing to count are left out. */
export function readGauge(name: GaugeName, sources: Iterable<TelemetrySource>, labels: Names, elections: Names): Reading[] {
  const readings = new Readings();
  for (const source of sources) {
    const { store, isSubscribed } = source;
    const each = (calls: Iterable<ObservedCall>, add: (attributes: Attributes, age: number) => void): void => {
      for (const { label, kind, age } of calls) add({ lock: labels.of(label, (message) => source.warn(message)), kind, store }, age / 1000);
    };
    switch (name) {
      case 'distributed_lock.held':
        each(source.held(), (attributes) => readings.add(attributes, 1));
        break;
      case 'distributed_lock.waiting':
        each(source.waiting(), (attributes) => readings.add(attributes, 1));
        break;
      case 'distributed_lock.oldest_hold':
        each(source.held(), (attributes, age) => readings.atLeast(attributes, age));
        break;
      case 'distributed_lock.oldest_wait':
        each(source.waiting(), (attributes, age) => readings.atLeast(attributes, age));
        break;
      case 'distributed_lock.subscriber':
        if (isSubscribed !== undefined) readings.atMost({ store }, Number(isSubscribed));
        break;
      case 'distributed_lock.leader':
        for (const { name: election, leads } of source.elections()) {
          readings.atLeast({ store, election: elections.of(election, (message) => source.warn(message)) }, Number(leads));
        }
    }
  }
  return readings.all;
}

class Readings {
  private readonly values = new Map<string, { readonly attributes: Attributes; value: number }>();

  get all(): Reading[] {
    return [...this.values.values()];
  }

  add(attributes: Attributes, value: number): void {
    this.of(attributes, 0).value += value;
  }

  atLeast(attributes: Attributes, value: number): void {
    const reading = this.of(attributes, value);
    reading.value = Math.max(reading.value, value);
  }

  atMost(attributes: Attributes, value: number): void {
    const reading = this.of(attributes, value);
    reading.value = Math.min(reading.value, value);
  }

  private of(attributes: Attributes, first: number): { value: number } {
    const key = JSON.stringify(Object.values(attributes));
    let reading = this.values.get(key);
    if (!reading) this.values.set(key, (reading = { attributes, value: first }));
    return reading;
  }
}
