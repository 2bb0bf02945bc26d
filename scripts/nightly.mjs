// What takes too long for each change: `npm run nightly -- chaos --ci`. scripts/README.md says what each one does.
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The commands of each name, which run one after another; arguments go to the last one. */
export const COMMANDS = {
  all: [
    'node scripts/test.mjs --tier all --client node-redis',
    'node scripts/test.mjs --tier all --client node-redis-6',
    'node scripts/test.mjs --tier all',
  ],
  sure: ['node scripts/test-sure.mjs'],
  nodes: ['tsx scripts/nodes.mjs'],
  times: ['node scripts/times.mjs'],
  versions: ['node scripts/versions.mjs'],
  mutants: ['node test/mutants/run.mjs'],
  stryker: ['node scripts/packages.mjs test', 'node scripts/packages.mjs scripts stryker run'],
  package: ['tsx scripts/check-package.mjs'],
  examples: ['tsx scripts/check-examples.mjs'],
  matrix: ['tsx scripts/check-matrix.mjs'],
  simulate: ['tsx test/simulation/main.ts'],
  chaos: ['tsx test/chaos/run.ts'],
  soak: ['node --expose-gc --import tsx test/chaos/soak.ts'],
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, ...args] = process.argv.slice(2);
  const commands = Object.hasOwn(COMMANDS, name) ? COMMANDS[name].map((command) => command.split(' ')) : [];
  if (commands.length === 0) {
    console.error(`npm run nightly -- <name> [arguments]: one of ${Object.keys(COMMANDS).join(', ')}`);
    process.exit(2);
  }
  commands.at(-1).push(...args);
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const env = { ...process.env, PATH: `${join(cwd, 'node_modules/.bin')}${delimiter}${process.env.PATH}` };
  const failed = commands.find(([program, ...rest]) => spawnSync(program, rest, { cwd, env, stdio: 'inherit' }).status !== 0);
  process.exitCode = failed ? 1 : 0;
}
