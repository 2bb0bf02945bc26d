import { DataPointType, type ResourceMetrics } from '@opentelemetry/sdk-metrics';

/** The value of each time series, by its name and its sorted labels: `name{kind="mutex",lock="a"}`. Of histograms only the counts. */
export type Scrape = Map<string, number>;

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/gm;
const LABEL = /(\w+)="([^"]*)"/g;

/** What Prometheus reads. */
export function parseScrape(text: string): Scrape {
  const series: Scrape = new Map();
  for (const [, name = '', labels = '', value] of text.matchAll(LINE)) {
    if (!/_(bucket|sum)$/.test(name)) series.set(seriesOf(name, labels.match(LABEL) ?? []), Number(value));
  }
  return series;
}

/** What an OpenTelemetry SDK has collected, with the names that its exporters for Prometheus give. */
export function parseCollected({ scopeMetrics }: ResourceMetrics): Scrape {
  const series: Scrape = new Map();
  for (const { descriptor, dataPoints, dataPointType } of scopeMetrics.flatMap(({ metrics }) => metrics)) {
    const isHistogram = dataPointType === DataPointType.HISTOGRAM;
    const ending =
      (descriptor.unit === 's' ? '_seconds' : '') + (isHistogram ? '_count' : dataPointType === DataPointType.SUM ? '_total' : '');
    for (const { attributes, value } of dataPoints) {
      series.set(
        seriesOf(descriptor.name.replaceAll('.', '_') + ending, pairsOf(attributes as Record<string, string>)),
        typeof value === 'number' ? value : (value as { count: number }).count,
      );
    }
  }
  return series;
}

/** The sum over all series of this name whose labels have these values. */
export function total(scrape: Scrape, name: string, labels: Record<string, string> = {}): number {
  const wanted = pairsOf(labels);
  const isWanted = (series: string) => series.split('{')[0] === name && wanted.every((label) => series.includes(label));
  return [...scrape].reduce((sum, [series, value]) => sum + (isWanted(series) ? value : 0), 0);
}

/** The values of a label in all series. */
export function valuesOf(scrape: Scrape, label: string): Set<string> {
  const pairs = [...[...scrape.keys()].join('\n').matchAll(LABEL)];
  return new Set(pairs.filter(([, name]) => name === label).map(([, , value = '']) => value));
}

function pairsOf(labels: Record<string, string>): string[] {
  return Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
}

function seriesOf(name: string, pairs: string[]): string {
  return pairs.length === 0 ? name : `${name}{${pairs.sort().join(',')}}`;
}
