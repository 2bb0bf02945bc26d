// The workflows of GitHub.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

interface Job {
  strategy?: { matrix: { node?: number[]; steps?: string[] } };
  steps?: { run?: string }[];
  'continue-on-error'?: unknown;
  'runs-on'?: string;
}

const FOLDER = '.github/workflows';
const jobs = readdirSync(FOLDER).flatMap((file) => {
  const workflow = parse(readFileSync(join(FOLDER, file), 'utf8')) as { jobs: Record<string, Job> };
  return Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${name} of ${file}`, job }));
});

it.each(jobs)('$name installs all servers before it runs tests', ({ job: { steps = [] } }) => {
  const commands = steps.map(({ run = '' }) => run);
  const first = commands.findIndex((command) => /\.ci\/run|npm test|test:quick|nightly -- (?!versions|stryker)|matrix\.run/.test(command));
  const list = /^servers=\$\(node scripts\/services\.mjs --list all\)\n(sudo .*\n)*sudo apt-get install .* \$servers$/m;
  if (first >= 0) expect(commands.slice(0, first).join('\n')).toMatch(list);
});

it.each([[['first', 'frist']], [[]]])('a list of the tiers %j is refused, so that no job goes on without its servers', (tiers) => {
  const { status, stdout } = spawnSync(process.execPath, ['scripts/services.mjs', '--list', ...tiers], { encoding: 'utf8' });
  expect([status, stdout]).toEqual([1, '']);
});

it('no job may fail, nor run on an image that changes, and each Node that is claimed runs tests', () => {
  for (const { job } of jobs) {
    expect(job).not.toHaveProperty('continue-on-error');
    expect(job['runs-on']).toMatch(/^ubuntu-\d/);
  }
  const matrixOf = (name: string) => jobs.find((each) => each.name === name)!.job.strategy!.matrix;
  const [, claimed] = /Node ((?:\d+, )+\d+) with Nest/.exec(readFileSync('docs/upgrading.md', 'utf8'))!;
  expect(matrixOf('ci of ci.yml').steps).toContain('tests integrations');
  expect([22, ...matrixOf('node of ci.yml').node!].sort().join(', ')).toBe(claimed);
});
