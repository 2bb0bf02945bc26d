// The alerts in docs/grafana/, as Prometheus evaluates them.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { programOf } from '../support/services.js';

const run = promisify(execFile);
const named = (file: string, name: RegExp) => [...new Set([...readFileSync(file, 'utf8').matchAll(name)].map(([, alert]) => alert))].sort();

it('the alerts fire when they should, and at no other time', async () => {
  const promtool = await programOf('promtool');
  const { stdout } = await run(promtool, ['test', 'rules', 'docs/grafana/alerts.test.yml']);
  expect(stdout).toContain('SUCCESS');
});

it.each([
  ['fires', /- alertname: (\w+)\n/g],
  ['does not fire', /\{ alertname: (\w+), eval_time: \w+, exp_alerts: \[\] \}/g],
])('each alert has a test in which it %s', (_case, test) => {
  expect(named('docs/grafana/alerts.test.yml', test)).toEqual(named('docs/grafana/alerts.yml', /- alert: (\w+)\n/g));
});
