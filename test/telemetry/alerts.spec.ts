// The alerts in docs/grafana/, as Prometheus evaluates them.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { programOf } from '../support/services.js';

const run = promisify(execFile);
const named = (file: string, name: RegExp) => [...new Set([...readFileSync(file, 'utf8').matchAll(name)].map(([, alert]) => alert))].sort();

it('the alerts fire when they should, and at no other time', async () => {
  const promtool = await programOf('promtool');
  const { stdout } = await run(promtool, ['test', 'rules', 'docs/grafana/alerts.test.yml']);
  expect(stdout).toContain('SUCCESS');
});

it('the panels and the rules are what Prometheus can evaluate', async () => {
  const { panels } = JSON.parse(readFileSync('docs/grafana/dashboard.json', 'utf8')) as { panels: { targets: { expr: string }[] }[] };
  const shown = panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll('$job', '.*').replaceAll('$__rate_interval', '5m')),
  );
  const folder = mkdtempSync(join(tmpdir(), 'promtool-'));
  const rules = shown.map((expr, index) => ({ record: `panel:${index}`, expr }));
  writeFileSync(join(folder, 'panels.yml'), JSON.stringify({ groups: [{ name: 'panels', rules }] }));
  const { stdout } = await run(await programOf('promtool'), ['check', 'rules', 'docs/grafana/alerts.yml', join(folder, 'panels.yml')]);
  rmSync(folder, { recursive: true });
  expect(stdout).toContain(`SUCCESS: ${shown.length} rules found`);
  expect(shown.length).toBeGreaterThan(10);
});

it.each([
  ['fires', /- alertname: (\w+)\n/g],
  ['does not fire', /\{ alertname: (\w+), eval_time: \w+, exp_alerts: \[\] \}/g],
])('each alert has a test in which it %s', (_case, test) => {
  expect(named('docs/grafana/alerts.test.yml', test)).toEqual(named('docs/grafana/alerts.yml', /- alert: (\w+)\n/g));
});
