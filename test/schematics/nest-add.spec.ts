// `nest add nestjs-distributed-lock`, by the Nest CLI, on apps that the Nest CLI generates.
import { cpSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type App, appIn, openWorkshop, type Workshop } from './workshop.js';

/** What the Nest CLI runs for `nest new`, `nest generate` and `nest add`. */
const SCHEMATICS = () => join(workshop.folder, 'node_modules/@angular-devkit/schematics-cli/bin/schematics.js');

// Packages are installed, and a compiler runs.
jest.setTimeout(600_000);

let workshop: Workshop;

beforeAll(async () => {
  workshop = await openWorkshop();
  for (const type of ['esm', 'cjs']) await generate(type);
});

afterAll(() => workshop.remove());

describe.each([
  { type: 'esm', suffix: '.js' },
  { type: 'cjs', suffix: '' },
])('an app of type $type', ({ type, suffix }) => {
  it('compiles, starts and locks after `nest add`', async () => {
    const app = copyOf(type, 'locks');
    await nestAdd(app, '--store', 'memory');
    app.write('src/app.controller.ts', CONTROLLER);
    app.write('src/probe.ts', PROBE.replaceAll('%', suffix));
    await app.run('nest', ['build']);
    expect(JSON.parse(await app.run('node', ['dist/probe.js']))).toEqual({
      said: 'Hello',
      acquired: [`${type}:AppController.getHello-locks`],
    });
  });
});

describe('nest add', () => {
  it('takes Redis by default, and the app compiles', async () => {
    const app = copyOf('esm', 'redis');
    expect(await nestAdd(app)).toContain('ioredis is added to package.json, and not installed.');
    expect(app.read('src/app.module.ts')).toContain('url: process.env.REDIS_URL!,');
    await app.run('tsc', ['--noEmit', '-p', 'tsconfig.build.json']);
  });

  it('changes nothing the second time, and says so', async () => {
    const app = copyOf('esm', 'twice');
    await nestAdd(app, '--store', 'memory');
    const once = sourcesOf(app);
    const said = await nestAdd(app, '--store', 'redis');
    expect(said).toContain('DistributedLockModule is there already, in src/app.module.ts: left as it is.');
    expect(sourcesOf(app)).toEqual(once);
  });

  it('installs ioredis, unless that is skipped', async () => {
    const app = copyOf('esm', 'installs');
    app.write('bin/npm', `#!/bin/sh\necho "$@" >> "${app.folder}/installs.txt"\n`, 0o755);
    const PATH = [join(app.folder, 'bin'), process.env.PATH].join(delimiter);
    await app.run('node', [SCHEMATICS(), 'nestjs-distributed-lock:nest-add'], { PATH });
    expect(app.read('installs.txt')).toMatch(/^install\b.*\n$/);
    await app.run('node', [SCHEMATICS(), 'nestjs-distributed-lock:nest-add'], { PATH });
    expect(app.read('installs.txt').split('\n')).toHaveLength(2);
  });

  it('writes nothing in a dry run', async () => {
    const app = copyOf('esm', 'dry');
    const before = sourcesOf(app);
    expect(await nestAdd(app, '--dry-run')).toContain('UPDATE src/app.module.ts');
    expect(sourcesOf(app)).toEqual(before);
  });
});

const CONTROLLER = `import { Controller, Get } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';

@Controller()
export class AppController {
  @Get()
  @DistributedLock()
  async getHello(): Promise<string> {
    return 'Hello';
  }
}
`;

const PROBE = `import { NestFactory } from '@nestjs/core';
import { Locks } from 'nestjs-distributed-lock';
import { AppController } from './app.controller%';
import { AppModule } from './app.module%';

async function probe() {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const acquired: string[] = [];
  app.get(Locks).on('acquired', ({ key }) => void acquired.push(key));
  const said = await app.get(AppController).getHello();
  await app.close();
  console.log(JSON.stringify({ said, acquired }));
}
void probe();
`;

async function generate(type: string): Promise<void> {
  const options = [`--name=${type}`, `--type=${type}`, '--language=ts', '--strict'];
  await workshop.run('node', [SCHEMATICS(), '@nestjs/schematics:application', ...options]);
}

/** A copy of the generated app, for one test. */
function copyOf(type: string, name: string): App {
  cpSync(join(workshop.folder, type), join(workshop.folder, `${type}-${name}`), { recursive: true });
  return appIn(workshop, `${type}-${name}`);
}

function nestAdd(app: App, ...options: string[]): Promise<string> {
  return app.run('nest', ['add', 'nestjs-distributed-lock', '--skip-install', ...options]);
}

function sourcesOf(app: App): string[] {
  return ['package.json', 'src/app.module.ts', 'src/main.ts'].map((file) => app.read(file));
}
