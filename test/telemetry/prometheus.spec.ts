// What Prometheus reads: our series as prom-client writes them, and the names that the dashboard and the alerts in grafana/ ask for.
import '../support/virtual-time.js';
import { readFileSync } from 'node:fs';
import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { SeriesCounter, SeriesHistogram } from '../../lib/prometheus/series-metrics.js';
import { eventually } from '../support/eventually.js';

describe('a metric of prom-client that is counted by series', () => {
  const buckets = [0.1, 0.5, 1];
  const series = [
    { lock: 'a', kind: 'mutex' },
    { lock: 'b "quoted"', kind: 'read' },
  ];

  /** The same metrics and the same values, from prom-client itself and from ours. */
  function pair(contentType?: string): [theirs: Registry, ours: Registry] {
    const [theirs, ours] = [new Registry(), new Registry()];
    for (const registry of [theirs, ours]) {
      if (contentType) registry.setContentType(contentType as never);
      registry.setDefaultLabels({ app: 'shop' });
    }
    const settings = (registry: Registry) => ({ help: 'help', labelNames: ['lock', 'kind'], registers: [registry] });
    const histogram = new Histogram({ name: 'h', buckets, ...settings(theirs) });
    const counter = new Counter({ name: 'c_total', ...settings(theirs) });
    const ourHistogram = new SeriesHistogram({ name: 'h', buckets, ...settings(ours) });
    const ourCounter = new SeriesCounter({ name: 'c_total', ...settings(ours) });
    for (const value of [0, 0.1, 0.100001, 0.7, 1, 3]) {
      for (const labels of series) {
        histogram.observe(labels, value);
        ourHistogram.record(value, labels);
        counter.inc(labels, value);
        ourCounter.record(value, labels);
      }
    }
    return [theirs, ours];
  }

  /** The order of labels says nothing. */
  const normal = (text: string) =>
    text.replaceAll(/\{(.*)\}/g, (_all, labels: string) => `{${[...labels.match(/\w+="(?:[^"\\]|\\.)*"/g)!].sort().join(',')}}`);

  it.each([Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE])('is exported as any other, as %s', async (contentType) => {
    const [theirs, ours] = pair(contentType);
    expect(normal(await ours.metrics())).toEqual(normal(await theirs.metrics()));
  });

  it('is gathered from the workers of a cluster as any other', async () => {
    const gathered = async (registry: Registry) => {
      const json = (await registry.getMetricsAsJSON()) as unknown as object[];
      return normal(await AggregatorRegistry.aggregate([json, json]).metrics());
    };
    const [theirs, ours] = pair();
    expect(await gathered(ours)).toEqual(await gathered(theirs));
  });

  it('is empty after a reset', async () => {
    const [theirs, ours] = pair();
    for (const registry of [theirs, ours]) registry.resetMetrics();
    expect(normal(await ours.metrics())).toEqual(normal(await theirs.metrics()));
  });
});

describe('the dashboard and the alerts', () => {
  /** Prometheus adds them to whatever it scrapes. */
  const OF_PROMETHEUS = ['job', 'instance'];

  interface Dashboard {
    panels: { title: string; targets: { expr: string }[] }[];
    templating: { list: { query: string | { query: string } }[] };
  }

  const { panels, templating } = JSON.parse(readFileSync('grafana/dashboard.json', 'utf8')) as Dashboard;
  const alerts = [...readFileSync('grafana/alerts.yml', 'utf8').matchAll(/- alert: (\w+)\n.*?expr: (?:>-\n)?(.*?)\n {8}(?:for|labels):/gs)];
  const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const asked = templating.list.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));
  const expressions = [...shown, ...asked, ...alerts.map(([, , expression = '']) => expression)];

  /** The series of a scrape that has all there can be: metric → label → values. */
  const series = new Map<string, Map<string, Set<string>>>();

  beforeAll(async () => {
    const registry = new Registry();
    const store = memoryStore();
    const locks = new Locks(store, { telemetry: prometheus(registry), logger: false });
    const refusing = { ...store.mutex, acquire: () => Promise.reject(new StoreError('no', { transient: false, isRefusal: true })) };
    await new Locks({ ...store, mutex: refusing }, { telemetry: prometheus(registry), logger: false }).acquire('a').catch(() => undefined);
    const label = 'A.b';
    const renewed = await locks.acquire('renewed', { label });
    await renewed.renew();
    const lost = await locks.acquire('lost', { label });
    await store.mutex.release({ key: 'lost', owner: lost.owner, keepFor: 0 });
    await lost.renew().catch(() => undefined);
    await locks.tryAcquire('renewed', { label });
    await locks.using('released', () => undefined, { label });
    const election = locks.leaderElection('reports');
    const elected = new Promise((resolve) => election.on('elected', resolve));
    const candidacy = election
      .run(({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
      .catch(() => undefined);
    await elected;
    const waiter = locks.acquire('renewed', { label, waitTimeout: Infinity }).catch(() => undefined);
    const text = await eventually(async () => {
      const scrape = await registry.metrics();
      for (const name of ['oldest_wait_seconds{', 'leader{', 'event_loop_lag_seconds_count'])
        expect(scrape).toContain(`distributed_lock_${name}`);
      return scrape;
    });
    for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
      const name = /^\w+/.exec(line)![0];
      const labels = series.get(name) ?? new Map<string, Set<string>>();
      series.set(name, labels);
      for (const [, each = '', value = ''] of line.matchAll(/(\w+)="([^"]*)"/g))
        labels.set(each, (labels.get(each) ?? new Set()).add(value));
    }
    await Promise.all([locks.close(), waiter, candidacy]);
  });

  it.each(expressions)('%s names series that a scrape has', (expression) => {
    const metrics = [...expression.matchAll(/distributed_lock_\w+/g)].map(([name]) => name);
    expect(metrics).not.toEqual([]);
    const known = new Set(OF_PROMETHEUS);
    for (const name of metrics) {
      expect([...series.keys()]).toContain(name);
      for (const label of series.get(name)!.keys()) known.add(label);
    }
    const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(', '));
    const matched = [...expression.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = '']) => label);
    for (const label of [...grouped, ...matched]) expect([...known]).toContain(label);
    for (const [, label = '', value = ''] of expression.matchAll(/(\w+)!?="(\w+)"/g)) {
      expect(metrics.flatMap((name) => [...(series.get(name)!.get(label) ?? [])])).toContain(value);
    }
    expect(expression.replaceAll(/[^()]/g, '').length % 2).toBe(0);
  });

  it('show all metrics', () => {
    const names = [...series.keys()].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(names.filter((name) => !shown.join('\n').includes(name))).toEqual([]);
  });

  it('are a dashboard and five alerts', () => {
    expect(alerts.map(([, name]) => name)).toEqual([
      'DistributedLockWaitIsStuck',
      'DistributedLockLost',
      'DistributedLockRenewalsAreLate',
      'DistributedLockRefused',
      'DistributedLockWaitersPoll',
    ]);
  });
});
