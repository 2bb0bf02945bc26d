import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { eventually } from '../support/eventually.js';

/** Prometheus adds them to whatever it scrapes. */
const OF_PROMETHEUS = ['job', 'instance'];

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
  templating: { list: { query: string | { query: string } }[] };
}

const { panels, templating } = JSON.parse(readFileSync('grafana/dashboard.json', 'utf8')) as Dashboard;
const alerts = [...readFileSync('grafana/alerts.yml', 'utf8').matchAll(/- alert: (\w+)\n.*?expr: (?:>-\n)?(.*?)\n {8}(?:for|labels):/gs)];
const expressions: [where: string, expression: string][] = [
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [title, expr])),
  ...templating.list.flatMap(({ query }): [string, string][] => (typeof query === 'string' ? [] : [['a variable', query.query]])),
  ...alerts.map(([, name = '', expr = '']): [string, string] => [name, expr]),
];

/** The series of a scrape that has all there can be: metric → label → values. */
let series: Map<string, Map<string, Set<string>>>;

beforeAll(async () => {
  const registry = new Registry();
  const store = memoryStore();
  const locks = new Locks(store, { telemetry: prometheus(registry), logger: false });
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
  const scrape = async () => {
    const text = await registry.metrics();
    for (const name of ['oldest_wait_seconds{', 'leader{', 'event_loop_lag_seconds_count'])
      expect(text).toContain(`distributed_lock_${name}`);
    return text;
  };
  series = seriesOf(await eventually(scrape));
  await Promise.all([locks.close(), waiter, candidacy]);
});

function seriesOf(text: string): typeof series {
  const found: typeof series = new Map();
  for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    const name = /^\w+/.exec(line)![0];
    const labels = found.get(name) ?? new Map<string, Set<string>>();
    found.set(name, labels);
    for (const [, label = '', value = ''] of line.matchAll(/(\w+)="([^"]*)"/g))
      labels.set(label, (labels.get(label) ?? new Set()).add(value));
  }
  return found;
}

it.each(expressions)('%s: %s names series that a scrape has', (_where, expression) => {
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

it('all metrics are on the dashboard', () => {
  const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n');
  const names = [...series.keys()].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  expect(names.filter((name) => !shown.includes(name))).toEqual([]);
});

it('there are four alerts', () => {
  expect(alerts.map(([, name]) => name)).toEqual([
    'DistributedLockWaitIsStuck',
    'DistributedLockLost',
    'DistributedLockRenewalsAreLate',
    'DistributedLockWaitersPoll',
  ]);
});
