// Node itself, in each version that the library is for, from npm packages.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { install, run } from './packed.mjs';

const MAJORS = [20, 22, 24, 26];
const BUILDS = 'linux-x64';

/** @returns {Promise<{ major: number, version: string, command: string }[]>} elsewhere than on Linux only the Node that runs this */
export async function nodeBuilds(folder) {
  if (`${process.platform}-${process.arch}` !== BUILDS) {
    return [{ major: Number.parseInt(process.versions.node), version: process.version, command: process.execPath }];
  }
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }));
  await install(
    folder,
    MAJORS.map((major) => `node${major}@npm:node-${BUILDS}@${major}`),
  );
  return Promise.all(MAJORS.map((major) => installed(major, join(folder, `node_modules/node${major}/bin/node`))));
}

async function installed(major, command) {
  const version = (await run(command, ['-p', 'process.version'], process.cwd())).trim();
  assert.match(version, new RegExp(`^v${major}\\.`));
  return { major, version, command };
}
