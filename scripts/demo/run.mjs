import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { Leftovers } from './leftovers.mjs';

register(); // what starts the processes is TypeScript, shared with the tests

/** What the reader can change. Where it is thrown does not matter. */
export class NotPossible extends Error {}

/**
 * Runs a demo from the project's folder and ends what it has left, however it ends, signals included.
 *
 * @param main gets the leftovers; resolves to whether all went as it should.
 */
export async function runDemo(main) {
  process.chdir(fileURLToPath(new URL('../../', import.meta.url)));
  const leftovers = new Leftovers();
  let interrupted = false;
  for (const [signal, status] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
    process.once(signal, () => {
      interrupted = true;
      void leftovers.clear(true).finally(() => process.exit(status));
    });
  }
  try {
    process.exitCode = (await main(leftovers)) ? 0 : 1;
  } catch (error) {
    if (!interrupted) console.error(error instanceof NotPossible ? error.message : error);
    process.exitCode = 1;
  } finally {
    await leftovers.clear();
  }
}

/** The library and the sample app, with a dot a second. */
export async function build(leftovers) {
  for (const [script, what] of Object.entries({ build: 'the library', 'build:sample': 'the sample app' })) {
    process.stderr.write(`Building ${what} `);
    const dots = setInterval(() => process.stderr.write('.'), 1_000);
    const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 2, 'inherit'] });
    leftovers.add(async () => child.kill());
    const [code] = await once(child, 'exit').finally(() => clearInterval(dots));
    process.stderr.write('\n');
    if (code !== 0) throw new Error(`npm run ${script} has failed.`);
  }
}
