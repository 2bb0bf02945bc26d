// The names that the dashboard and the alerts in docs/grafana/ ask for, in a scrape that has all there can be.
import '../support/virtual-time.js';
import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { eventually } from '../support/eventually.js';

describe('the dashboard and the alerts', () => {
  /** Prometheus adds them to whatever it scrapes. */
  const OF_PROMETHEUS = ['job', 'instance'];

  interface Dashboard {
    panels: { title: string; targets: { expr: string }[] }[];
    templating: { list: { query: string | { query: string } }[] };
  }

  const { panels, templating } = JSON.parse(readFileSync('docs/grafana/dashboard.json', 'utf8')) as Dashboard;
  const alerts = [
    ...readFileSync('docs/grafana/alerts.yml', 'utf8').matchAll(/- alert: (\w+)\n.*?expr: (?:>-\n)?(.*?)\n {8}(?:for|labels):/gs),
  ];
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
    await locks.acquire('renewed', { label, waitTimeout: 1 }).catch(() => undefined);
    await locks.acquire('forced', { label });
    await locks.forceRelease('forced', { reason: 'it hangs', grace: 0 });
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
      for (const name of ['oldest_wait_seconds{', 'leader{']) expect(scrape).toContain(`distributed_lock_${name}`);
      return scrape;
    });
    for (const [line, name = ''] of text.matchAll(/^(\w+).*/gm)) {
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
  });

  it('show all metrics', () => {
    const names = [...series.keys()].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(names.filter((name) => !shown.join('\n').includes(name))).toEqual([]);
  });
});

it('the counter of losses is there from the first lease, so that the first loss is an increase', async () => {
  const registry = new Registry();
  const locks = new Locks(memoryStore(), { telemetry: prometheus(registry), logger: false });
  await locks.using('a', () => undefined, { label: 'A.b' });
  const scrape = await registry.metrics();
  for (const reason of ['expired', 'taken'])
    expect(scrape).toContain(`distributed_lock_lost_total{lock="A.b",kind="mutex",store="memory",reason="${reason}"} 0`);
});

it('as many labels have series as an app wants', async () => {
  const registry = new Registry();
  const locks = new Locks(memoryStore(), { telemetry: prometheus(registry, { labels: 2 }), logger: false });
  for (const label of ['A.a', 'A.b', 'A.c', 'A.d']) await locks.using('a', () => undefined, { label });
  const labels = new Set(Array.from((await registry.metrics()).matchAll(/lock="([^"]*)"/g), ([, label]) => label));
  expect(labels).toEqual(new Set(['A.a', 'A.b', '(other)']));
  for (const wrong of [0, 101, 1.5])
    expect(() => prometheus(registry, { labels: wrong })).toThrow(/"labels" must be a whole number from 1 to 100/);
});
