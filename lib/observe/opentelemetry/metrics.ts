import type { Meter, MeterProvider } from '@opentelemetry/api';
// All of it: a name that an old version does not have could not be imported, and nobody would be answered why.
import * as api from '@opentelemetry/api';
import { processWide } from '../../core/util/process-wide.js';
import { MetricsHub, type Attributes } from '../hub.js';
import { ALL, type GaugeName, type InstrumentName } from '../instruments.js';

export const SCOPE = 'nestjs-distributed-lock';
/** Version 1.3 brought them. */
export const hasMetrics = 'createNoopMeter' in api;

/** A provider has each metric once, however many `Locks` and copies of this package report to it. */
const hubs = processWide('opentelemetry', () => new WeakMap<MeterProvider, MetricsHub>());

/** The hub of the provider that is registered globally; `undefined`: there is none. */
export function metricsHub(): MetricsHub | undefined {
  const provider = api.metrics.getMeterProvider();
  let hub = hubs.get(provider);
  if (hub) return hub;
  const meter = provider.getMeter(SCOPE);
  if (meter === api.createNoopMeter()) return undefined;
  hubs.set(provider, (hub = createHub(meter)));
  return hub;
}

function createHub(meter: Meter): MetricsHub {
  const record = new Map<InstrumentName, (value: number, attributes: Attributes) => void>();
  const hub = new MetricsHub((name, value, attributes) => record.get(name)?.(value, attributes));
  for (const [name, { type, unit, description, buckets = [] }] of ALL) {
    if (type === 'histogram') {
      const histogram = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } });
      record.set(name, (value, attributes) => histogram.record(value, attributes));
    } else if (type === 'counter') {
      const counter = meter.createCounter(name, { unit, description });
      record.set(name, (value, attributes) => counter.add(value, attributes));
    } else {
      meter.createObservableGauge(name, { unit, description }).addCallback((result) => {
        for (const { attributes, value } of hub.read(name as GaugeName)) result.observe(value, attributes);
      });
    }
  }
  return hub;
}
