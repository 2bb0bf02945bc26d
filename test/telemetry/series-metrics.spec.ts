import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { SeriesCounter, SeriesHistogram } from '../../lib/prometheus/series-metrics.js';

const buckets = [0.1, 0.5, 1];
const series = [
  { lock: 'a', kind: 'mutex' },
  { lock: 'b "quoted"', kind: 'read' },
];
const values = [0, 0.1, 0.100001, 0.7, 1, 3];

/** The same metrics and the same values, from prom-client itself and from ours. */
function pair(contentType?: string) {
  const registries = [0, 1].map(() => {
    const registry = new Registry();
    if (contentType) registry.setContentType(contentType as never);
    registry.setDefaultLabels({ app: 'shop' });
    return registry;
  }) as [Registry, Registry];
  const settings = (registry: Registry) => ({ help: 'help', labelNames: ['lock', 'kind'], registers: [registry] });
  const histogram = new Histogram({ name: 'h', buckets, ...settings(registries[0]) });
  const counter = new Counter({ name: 'c_total', ...settings(registries[0]) });
  const ours = new SeriesHistogram({ name: 'h', buckets, ...settings(registries[1]) });
  const ourCounter = new SeriesCounter({ name: 'c_total', ...settings(registries[1]) });
  for (const value of values) {
    for (const labels of series) {
      histogram.observe(labels, value);
      ours.record(value, labels);
      counter.inc(labels, value);
      ourCounter.record(value, labels);
    }
  }
  return registries;
}

/** The order of labels says nothing. */
const normal = (text: string) =>
  text.split('\n').map((line) =>
    line.replace(
      /\{(.*)\}/,
      (_all, labels: string) =>
        `{${labels
          .match(/\w+="(?:[^"\\]|\\.)*"/g)!
          .sort()
          .join(',')}}`,
    ),
  );

describe('a metric of prom-client that is counted by series', () => {
  it.each([Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE])('is exported as any other, as %s', async (contentType) => {
    const [theirs, ours] = pair(contentType);
    expect(normal(await ours.metrics())).toEqual(normal(await theirs.metrics()));
  });

  it('is gathered from the workers of a cluster as any other', async () => {
    const [theirs, ours] = await Promise.all(
      pair().map(async (registry) => {
        const json = (await registry.getMetricsAsJSON()) as unknown as object[];
        return AggregatorRegistry.aggregate([json, json]).metrics();
      }),
    );
    expect(normal(ours!)).toEqual(normal(theirs!));
  });

  it('is empty after a reset', async () => {
    const [theirs, ours] = pair();
    for (const registry of [theirs, ours]) registry.resetMetrics();
    expect(normal(await ours.metrics())).toEqual(normal(await theirs.metrics()));
  });
});
