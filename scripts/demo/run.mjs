import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { DEMO_BUILDS, isOld } from '../build-if-changed.mjs';
import { withLeftovers } from '../leftovers.mjs';

register(); // what starts the processes is TypeScript, shared with the tests

/**
 * Runs a demo from the project's folder, and ends what it has left, however it ends.
 *
 * @param main gets the leftovers; resolves to what did not go as it should
 */
export async function runDemo(main) {
  process.chdir(fileURLToPath(new URL('../../', import.meta.url)));
  await withLeftovers(async (leftovers) => {
    const problems = await main(leftovers);
    for (const problem of problems) console.error(problem);
    return problems.length === 0;
  });
}

/** The library and the apps of the demo, unless they are built, with a dot a second. */
export async function build(leftovers) {
  for (const { command, what, from, to } of DEMO_BUILDS) {
    if (!isOld({ from, to })) continue;
    process.stderr.write(`Building ${what} `);
    const dots = setInterval(() => process.stderr.write('.'), 1_000);
    const [program, ...args] = command;
    const child = spawn(program, args, { stdio: ['ignore', 2, 'inherit'] });
    leftovers.add(async () => child.kill());
    const [code] = await once(child, 'exit').finally(() => clearInterval(dots));
    process.stderr.write('\n');
    if (code !== 0) throw new Error(`${command.join(' ')} has failed.`);
  }
}
