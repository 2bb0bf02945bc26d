import { Gauge, register as defaultRegistry, type Registry } from 'prom-client';
import type { Telemetry } from '../core/model/telemetry.js';
import { processWide } from '../core/util/process-wide.js';
import { Hub, type Sink } from '../observe/hub.js';
import { ALL, type GaugeName, type Instrument, type InstrumentName, type RecordedName } from '../observe/instruments.js';
import { SeriesCounter, SeriesHistogram } from './series-metrics.js';

/** A registry has each metric once, however many `Locks` and copies of this package report to it. */
const hubs = processWide('prometheus', () => new WeakMap<Registry, Hub>());

/**
 * Metrics for Prometheus: `DistributedLockModule.forRoot({ store, telemetry: prometheus() })`. The names begin with `distributed_lock_`.
 *
 * @param registry of prom-client. Default: its global one.
 * @throws {Error} of prom-client, when the registry has another metric of such a name.
 */
export function prometheus(registry: Registry = defaultRegistry): Telemetry {
  return {
    observe(source) {
      let hub = hubs.get(registry);
      if (!hub || !isComplete(registry)) hubs.set(registry, (hub = register(registry)));
      return hub.observe(source);
    },
  };
}

/** False after `registry.clear()`. */
function isComplete(registry: Registry): boolean {
  return ALL.every(([name, instrument]) => registry.getSingleMetric(nameIn(name, instrument)));
}

function register(registry: Registry): Hub {
  const recorded = new Map<RecordedName, SeriesHistogram | SeriesCounter>();
  const sink: Sink = (name, value, attributes) => recorded.get(name)?.record(value, attributes);
  const hub = new Hub(sink);
  for (const [name, instrument] of ALL) {
    const { type, description, attributes, buckets = [] } = instrument;
    const settings = { name: nameIn(name, instrument), help: description, labelNames: [...attributes], registers: [registry] };
    if (type === 'histogram') {
      recorded.set(name as RecordedName, new SeriesHistogram({ ...settings, buckets: [...buckets] }));
    } else if (type === 'counter') {
      recorded.set(name as RecordedName, new SeriesCounter(settings));
    } else {
      new Gauge({
        ...settings,
        collect() {
          this.reset();
          for (const { attributes: series, value } of hub.read(name as GaugeName)) this.set(series, value);
        },
      });
    }
  }
  return hub;
}

/** As OpenTelemetry's exporters for Prometheus name it. */
function nameIn(name: InstrumentName, { type, unit }: Instrument): string {
  const ending = type === 'counter' ? '_total' : unit === 's' ? '_seconds' : '';
  return name.replaceAll('.', '_') + ending;
}
