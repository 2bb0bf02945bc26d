import type { ObservedCall, TelemetrySource } from '../core/model/telemetry.js';
import type { Attributes } from './hub.js';
import type { GaugeName } from './instruments.js';

const MOST_NAMES = 100;
const NONE = '(none)';
const OTHER = '(other)';

/** The names in one attribute. A registry keeps a time series per name for its whole life, so the names above a limit count as one. */
export class Names {
  private readonly known = new Set<string>();
  private hasWarned = false;

  /** @param what they are, for the warning. */
  constructor(private readonly what: string) {}

  of(source: TelemetrySource, name = NONE): string {
    if (this.known.has(name)) return name;
    if (this.known.size < MOST_NAMES) {
      this.known.add(name);
      return name;
    }
    if (!this.hasWarned) {
      this.hasWarned = true;
      source.warn(`More than ${MOST_NAMES} ${this.what} for metrics: the others are counted together, as "${OTHER}".`);
    }
    return OTHER;
  }
}

/** The value of one time series. */
export interface Reading {
  readonly attributes: Attributes;
  readonly value: number;
}

/** How one gauge is read. */
interface Gauge {
  /** The counts of one `Locks` now. */
  readonly of: (source: TelemetrySource, names: GaugeNames) => Reading[];
  /** The value of a series that has several readings. */
  readonly join: (one: number, other: number) => number;
}

interface GaugeNames {
  readonly labels: Names;
  readonly elections: Names;
}

const sum = (one: number, other: number): number => one + other;

const GAUGES: Record<GaugeName, Gauge> = {
  'distributed_lock.held': { of: (source, names) => readCalls(source.held(), source, names, () => 1), join: sum },
  'distributed_lock.waiting': { of: (source, names) => readCalls(source.waiting(), source, names, () => 1), join: sum },
  'distributed_lock.oldest_hold': { of: (source, names) => readCalls(source.held(), source, names, seconds), join: Math.max },
  'distributed_lock.oldest_wait': { of: (source, names) => readCalls(source.waiting(), source, names, seconds), join: Math.max },
  'distributed_lock.subscriber': {
    of: ({ store, isSubscribed }) => (isSubscribed === undefined ? [] : [{ attributes: { store }, value: Number(isSubscribed) }]),
    join: Math.min,
  },
  'distributed_lock.leader': {
    of: (source, { elections }) =>
      [...source.elections()].map(({ name, leads }) => ({
        attributes: { store: source.store, election: elections.of(source, name) },
        value: Number(leads),
      })),
    join: Math.max,
  },
};

/** Counts now, over all sources. A series without anything to count is left out. */
export function readGauge(name: GaugeName, sources: Iterable<TelemetrySource>, names: GaugeNames): Reading[] {
  const { of, join } = GAUGES[name];
  const readings = new Map<string, Reading>();
  for (const { attributes, value } of [...sources].flatMap((source) => of(source, names))) {
    const series = JSON.stringify(Object.values(attributes));
    const known = readings.get(series);
    readings.set(series, { attributes, value: known ? join(known.value, value) : value });
  }
  return [...readings.values()];
}

function readCalls(
  calls: Iterable<ObservedCall>,
  source: TelemetrySource,
  { labels }: GaugeNames,
  valueOf: (call: ObservedCall) => number,
): Reading[] {
  return [...calls].map((call) => ({
    attributes: { lock: labels.of(source, call.label), kind: call.kind, store: source.store },
    value: valueOf(call),
  }));
}

function seconds({ age }: ObservedCall): number {
  return age / 1000;
}
