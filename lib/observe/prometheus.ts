import { Counter, Gauge, Histogram, register as defaultRegistry, type Registry } from 'prom-client';
import type { Telemetry } from '../core/model/telemetry.js';
import { checkOptions, integerFrom } from '../core/model/check-options.js';
import { checkClient } from '../core/store/check-client.js';
import { processWide } from '../core/util/process-wide.js';
import { MetricsHub, type Attributes } from './hub.js';
import { MOST_NAMES } from './gauges.js';
import { ALL, type GaugeName, type Instrument, type InstrumentName } from './instruments.js';

/** Options of {@link prometheus}. */
export interface PrometheusOptions {
  /** How many labels of locks have time series of their own; the others are counted together, as `(other)`. From 1 to 100, which is the default. */
  labels?: number;
}

const CHECKS = { labels: integerFrom(1, MOST_NAMES) };

/** A registry has each metric once, however many `Locks` and copies of this package report to it. */
const hubs = processWide('prometheus', () => new WeakMap<Registry, MetricsHub>());

/**
 * Metrics for Prometheus: `DistributedLockModule.forRoot({ store, telemetry: prometheus() })`. The names begin with `distributed_lock_`.
 *
 * @param registry of prom-client. Default: its global one.
 * @throws {LockConfigError} when an option is wrong, or prom-client is too old.
 * @throws {Error} of prom-client, when the registry has another metric of such a name.
 */
export function prometheus(registry: Registry = defaultRegistry, options: PrometheusOptions = {}): Telemetry {
  checkOptions(options, 'prometheus', CHECKS);
  // Before version 13 a gauge has no `collect`, and would not be there.
  checkClient('prometheus', 'prom-client', 'collect' in new Gauge({ name: 'a', help: 'a', registers: [], collect() {} }));
  return {
    observe(source) {
      let hub = hubs.get(registry);
      if (!hub || !isComplete(registry)) hubs.set(registry, (hub = register(registry, options.labels)));
      return hub.observe(source);
    },
  };
}

/** False after `registry.clear()`. */
function isComplete(registry: Registry): boolean {
  return ALL.every(([name, instrument]) => registry.getSingleMetric(nameIn(name, instrument)));
}

function register(registry: Registry, labels?: number): MetricsHub {
  const record = new Map<InstrumentName, (value: number, attributes: Attributes) => void>();
  const hub = new MetricsHub((name, value, attributes) => record.get(name)?.(value, attributes), labels);
  for (const [name, instrument] of ALL) {
    const { type, description, attributes, buckets = [] } = instrument;
    const settings = { name: nameIn(name, instrument), help: description, labelNames: [...attributes], registers: [registry] };
    if (type === 'histogram') {
      const histogram = new Histogram({ ...settings, buckets: [...buckets] });
      record.set(name, (value, labels) => histogram.observe(labels, value));
    } else if (type === 'counter') {
      const counter = new Counter(settings);
      record.set(name, (value, labels) => counter.inc(labels, value));
    } else {
      new Gauge({
        ...settings,
        collect() {
          this.reset();
          for (const reading of hub.read(name as GaugeName)) this.set(reading.attributes, reading.value);
        },
      });
    }
  }
  return hub;
}

/** The name that OpenTelemetry's exporters for Prometheus give it. */
function nameIn(name: InstrumentName, { type, unit }: Instrument): string {
  const ending = type === 'counter' ? '_total' : unit === 's' ? '_seconds' : '';
  return name.replaceAll('.', '_') + ending;
}
