// The workflows of GitHub: each job installs the servers that its commands start.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

interface Job {
  strategy?: { matrix: { include?: Row[] } & Record<string, unknown> };
  steps?: { run?: string }[];
  'continue-on-error'?: unknown;
  'runs-on'?: string;
}
type Row = Record<string, unknown>;

const FOLDER = '.github/workflows';
const NONE: string[] = [];
/** The scripts that are no tests, each with the tiers that start the same servers. */
const OTHERS: Record<string, string[]> = {
  all: ['all'],
  sure: ['first'],
  mutants: ['all'],
  stryker: NONE,
  nodes: ['first'],
  versions: NONE,
  package: ['first'],
  examples: ['first'],
  matrix: ['first'],
  chaos: ['faults'],
  simulate: NONE,
  soak: ['faults'],
  lint: NONE,
  'test:quick': ['quick'],
  'docs:site': NONE,
};

const steps = Object.fromEntries(
  [...readFileSync('.ci/run', 'utf8').matchAll(/^ *chosen (\S+) (npm .*)$/gm)].map(([, name, command]) => [name!, command!]),
);
const jobs = readdirSync(FOLDER).flatMap((file) => {
  const workflow = parse(readFileSync(join(FOLDER, file), 'utf8')) as { jobs: Record<string, Job> };
  return Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${name} of ${file}`, job }));
});

let suitesOfTier: (tier: string) => string[];
let servicesOf: (suites: string[]) => string[];

beforeAll(async () => {
  ({ suitesOfTier } = (await import(resolve('scripts/tiers.mjs'))) as { suitesOfTier: typeof suitesOfTier });
  ({ servicesOf } = (await import(resolve('scripts/services.mjs'))) as { servicesOf: typeof servicesOf });
});

/** A job without a matrix runs once. */
function runsOf({ strategy }: Job): Row[] {
  const { include = [], ...axes } = strategy?.matrix ?? {};
  const product = Object.entries(axes).reduce<Row[]>(
    (rows, [axis, values]) => rows.flatMap((row) => (values as unknown[]).map((value) => ({ ...row, [axis]: value }))),
    [{}],
  );
  return [...(include.length > 0 && Object.keys(axes).length === 0 ? [] : product), ...include];
}

const filledIn = (text: string, row: Row): string => text.replace(/\$\{\{ matrix\.(\w+) \}\}/g, (_, name: string) => String(row[name]));

const tokens = (command: string): string[] => command.split(/\s+/).filter(Boolean);

/** The tiers whose servers these commands start. */
function tiersOf(commands: string): string[] {
  return [...commands.matchAll(/(\.ci\/run|npm test|npm run (?:nightly -- )?\S+)([^|&\n]*)/g)].flatMap(([, program, rest]) => {
    const args = tokens(rest!);
    if (program === '.ci/run')
      return (args.length > 0 && args[0] !== '--all' ? args : Object.keys(steps)).flatMap((step) => tiersOf(steps[step]!));
    return program === 'npm test' ? tierOfTests(args) : OTHERS[program!.split(' ').at(-1)!]!;
  });
}

/** The tier of a run of the tests, in which there must be a suite for each word. */
function tierOfTests(args: string[]): string[] {
  const tier = args.includes('--tier') ? args[args.indexOf('--tier') + 1]! : 'first';
  for (const word of args.filter((arg) => arg.startsWith('test/'))) expect(suitesOfTier(tier).join()).toContain(word);
  return [tier];
}

const serversOf = (tiers: string[]): string[] => [...new Set(servicesOf(tiers.flatMap(suitesOfTier)))].sort();

it.each(jobs)('$name installs the servers that its commands start', ({ job }) => {
  for (const row of runsOf(job)) {
    const commands = (job.steps ?? []).map(({ run = '' }) => filledIn(run, row)).join('\n');
    const [, listed = ''] =
      /^servers=\$\(node scripts\/services\.mjs --list (.*)\)\n(?:sudo .*\n)*sudo apt-get install .* \$servers$/m.exec(commands) ?? [];
    const started = tiersOf(commands);
    expect({ row, installed: serversOf(tokens(listed)) }).toEqual({
      row,
      installed: expect.arrayContaining(started.length > 0 ? serversOf(started) : []) as string[],
    });
  }
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
  const nodes = (name: string) => jobs.filter((each) => each.name === name).flatMap(({ job }) => runsOf(job));
  const [, claimed] = /Node ((?:\d+, )+\d+) with Nest/.exec(readFileSync('docs/upgrading.md', 'utf8'))!;
  expect(nodes('ci of ci.yml').map(({ steps: names }) => names)).toContain('tests integrations');
  expect([22, ...nodes('node of ci.yml').map(({ node }) => Number(node))].sort().join(', ')).toBe(claimed);
});
