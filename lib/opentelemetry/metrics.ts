import { createNoopMeter, metrics, type Meter, type MeterProvider } from '@opentelemetry/api';
import { processWide } from '../core/util/process-wide.js';
import { Hub, type Sink } from '../observe/hub.js';
import { ALL, type GaugeName, type RecordedName } from '../observe/instruments.js';
import type { Attributes } from '../observe/series.js';

export const SCOPE = 'nestjs-distributed-lock';

/** A provider has each metric once, however many `Locks` and copies of this package report to it. */
const hubs = processWide('opentelemetry', () => new WeakMap<MeterProvider, Hub>());

/** Of the provider that is registered globally; `undefined`: there is none. */
export function metricsHub(): Hub | undefined {
  const provider = metrics.getMeterProvider();
  let hub = hubs.get(provider);
  if (hub) return hub;
  const meter = provider.getMeter(SCOPE);
  if (meter === createNoopMeter()) return undefined;
  hubs.set(provider, (hub = createHub(meter)));
  return hub;
}

function createHub(meter: Meter): Hub {
  const recorders = new Map<RecordedName, (value: number, attributes: Attributes) => void>();
  const sink: Sink = (name, value, attributes) => recorders.get(name)?.(value, attributes);
  const hub = new Hub(sink);
  for (const [name, { type, unit, description, buckets = [] }] of ALL) {
    if (type === 'histogram') {
      const histogram = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } });
      recorders.set(name as RecordedName, (value, attributes) => histogram.record(value, attributes));
    } else if (type === 'counter') {
      const counter = meter.createCounter(name, { unit, description });
      recorders.set(name as RecordedName, (value, attributes) => counter.add(value, attributes));
    } else {
      meter.createObservableGauge(name, { unit, description }).addCallback((result) => {
        for (const { attributes, value } of hub.read(name as GaugeName)) result.observe(value, attributes);
      });
    }
  }
  return hub;
}
