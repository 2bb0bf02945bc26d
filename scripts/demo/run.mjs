import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { Leftovers } from './leftovers.mjs';

register(); // what starts the processes is TypeScript, shared with the tests

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
    if (!interrupted) console.error(error);
    process.exitCode = 1;
  } finally {
    await leftovers.clear();
  }
}

/** The library and the sample app. */
export function build() {
  const npm = (...args) => execFileSync('npm', ['run', '--silent', ...args], { stdio: ['ignore', 2, 'inherit'] });
  console.error('Building the library and the sample app…');
  npm('build');
  npm('build:sample');
}
