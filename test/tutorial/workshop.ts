import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { ROOT } from '../support/markdown.js';

const execute = promisify(execFile);

/** A folder in which Nest apps are made. They find their packages in its node_modules: the library as it is packed, the rest from the registry. */
export interface Workshop {
  readonly folder: string;
  /** Runs a program of the system or of node_modules; resolves with what it printed. @throws with that, unless it ends with 0. */
  run(command: string, args: string[], options?: { cwd?: string; env?: NodeJS.ProcessEnv }): Promise<string>;
  remove(): void;
}

/** @param nest its major version */
export async function openWorkshop(nest = 12): Promise<Workshop> {
  const folder = mkdtempSync(join(tmpdir(), 'workshop-'));
  const workshop: Workshop = {
    folder,
    run: (command, args, { cwd = folder, env = {} } = {}) =>
      run(command, args, cwd, { PATH: `${join(folder, 'node_modules/.bin')}${delimiter}${process.env.PATH ?? ''}`, ...env }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
  await installPackages(workshop, nest);
  await unpackLibrary(workshop, join(folder, 'node_modules/nestjs-distributed-lock'));
  return workshop;
}

async function installPackages(workshop: Workshop, nest: number): Promise<void> {
  const ofNest = ['cli', 'common', 'core', 'platform-express', 'schematics', 'testing'].map((name) => `@nestjs/${name}@^${nest}`);
  const typescript = nest < 12 ? 'typescript@~5.9' : 'typescript@~6.0';
  const others = ['reflect-metadata', 'rxjs', 'ioredis', typescript, '@types/node@22', '@types/jest@30'];
  writeFileSync(join(workshop.folder, 'package.json'), '{"private":true}');
  await workshop.run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...ofNest, ...others]);
  // An ESM app of Nest names the types of vitest in tsconfig.json. Its tests are not run here.
  const vitest = join(workshop.folder, 'node_modules/vitest');
  mkdirSync(vitest);
  writeFileSync(join(vitest, 'package.json'), '{"name":"vitest","version":"4.0.0"}');
  writeFileSync(join(vitest, 'globals.d.ts'), 'export {};');
}

async function unpackLibrary(workshop: Workshop, target: string): Promise<void> {
  if (!existsSync(join(ROOT, 'dist/schematics/collection.json')))
    throw new Error('Run npm run build first: the library is tested as it is packed.');
  const packed = join(workshop.folder, 'packed');
  mkdirSync(packed);
  await workshop.run('npm', ['pack', '--ignore-scripts', '--pack-destination', packed], { cwd: ROOT });
  const [tarball = ''] = readdirSync(packed);
  await workshop.run('tar', ['-xzf', tarball], { cwd: packed });
  cpSync(join(packed, 'package'), target, { recursive: true });
  rmSync(packed, { recursive: true });
}

async function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = execute(command, args, { cwd, env: { ...process.env, CI: 'true', ...env }, maxBuffer: 2 ** 24 });
  child.child.stdin?.end();
  try {
    const { stdout, stderr } = await child;
    return stripVTControlCharacters(stdout + stderr);
  } catch (cause) {
    const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause });
  }
}
