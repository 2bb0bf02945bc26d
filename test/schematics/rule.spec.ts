// What the schematic does to a project, whichever way its files are written.
import { readFileSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import { nestAdd, type Options } from '../../scripts/schematics/nest-add/index.js';

const supported = JSON.parse(readFileSync('scripts/supported-clients.json', 'utf8')) as Record<string, string>;
const MODULE = `import { Module } from '@nestjs/common';

@Module({
  imports: [],
})
export class AppModule {}
`;
const MAIN = `import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  await app.listen(3000);
}
void bootstrap();
`;
const PROJECT = { 'package.json': '{\n    "name": "shop"\n}\n', 'src/app.module.ts': MODULE, 'src/main.ts': MAIN };

describe('the root module', () => {
  it('is the class that main.ts starts, wherever it is and whatever its name', () => {
    const { files } = run(
      { store: 'memory' },
      {
        ...PROJECT,
        'src/shop/shop.module.ts': MODULE.replace('AppModule', 'ShopModule'),
        'src/main.ts': MAIN.replace('{ AppModule }', '{ ShopModule as AppModule }'),
      },
    );
    expect(files['src/shop/shop.module.ts']).toContain('DistributedLockModule.forRoot');
    expect(files['src/app.module.ts']).toBe(MODULE);
  });

  it('gets the name in package.json as the namespace of its keys, and none where it has no name, and the filter', () => {
    const { files } = run({ store: 'memory' }, { ...PROJECT, 'package.json': '{"name":"@acme/shop"}' });
    expect(files['src/app.module.ts']).toContain("namespace: '@acme/shop:'");
    expect(files['src/app.module.ts']).toContain('{ provide: APP_FILTER, useClass: LockExceptionFilter }');
    const unnamed = run({ store: 'memory' }, { ...PROJECT, 'package.json': '{}' });
    expect(unnamed.files['src/app.module.ts']).not.toContain('namespace');
  });

  it('is the one in the file that is named by --module', () => {
    const { files } = run({ store: 'memory', module: 'src/other.module.ts' }, { ...PROJECT, 'src/other.module.ts': MODULE });
    expect(files['src/other.module.ts']).toContain('DistributedLockModule.forRoot');
    expect(files['src/app.module.ts']).toBe(MODULE);
  });

  it('is looked for in the folder of the app, in a monorepo', () => {
    const { files } = run(
      { store: 'memory', sourceRoot: 'apps/shop/src' },
      {
        'package.json': '{"name":"shops"}',
        'apps/shop/src/shop.module.ts': MODULE.replace('AppModule', 'ShopModule'),
        'apps/shop/src/main.ts': MAIN.replaceAll('AppModule', 'ShopModule'),
        'apps/bank/src/bank.module.ts': MODULE.replace('AppModule', 'ShopModule'),
      },
    );
    expect(files['apps/shop/src/shop.module.ts']).toContain("namespace: 'shop:',");
    expect(files['apps/shop/src/main.ts']).toContain('app.enableShutdownHooks();');
    expect(files['apps/bank/src/bank.module.ts']).not.toContain('DistributedLockModule');
  });

  it.each([
    [
      'whose imports are elsewhere',
      { 'src/app.module.ts': MODULE.replace('[]', 'MODULES') },
      'src/app.module.ts was not changed: the imports of',
    ],
    ['that is not there', { 'src/app.module.ts': '' }, 'The root module was not found: no class AppModule with @Module() is in src'],
    [
      'of which there are two',
      { 'src/app.old.ts': MODULE },
      'Which is the root module? There is a AppModule in src/app.module.ts and in src/app.old.ts',
    ],
  ])('%s is left alone; what to paste is said, and the rest is done', (_, changes, why) => {
    const before = { ...PROJECT, ...changes };
    const { files, warnings } = run({}, before);
    expect(warnings).toContain(why);
    expect(warnings).toContain("import { redisStore } from 'nestjs-distributed-lock/redis';");
    expect(files['src/app.module.ts']).toBe(before['src/app.module.ts']);
    expect(files['package.json']).toContain('ioredis');
    expect(files['src/main.ts']).toContain('enableShutdownHooks');
  });

  it('and all else stay as they are the second time', () => {
    const { files, said } = run({});
    expect(said).toBe('The app starts when REDIS_URL has the address of your server.');
    const again = run({ store: 'memory' }, files);
    expect(again.said).toContain('DistributedLockModule is there already, in src/app.module.ts');
    expect(again.files).toEqual(files);
  });

  it('is left alone where another file has the lock module already', () => {
    const { files, said } = run(
      {},
      { ...PROJECT, 'src/lock.module.ts': 'export const lock = DistributedLockModule.forRoot({ store });\n' },
    );
    expect(said).toContain('DistributedLockModule is there already, in src/lock.module.ts');
    expect(files['src/app.module.ts']).toBe(MODULE);
    expect(files['package.json']).toBe(PROJECT['package.json']);
  });
});

it('finds the files of a project on Windows, where paths have backslashes', async () => {
  await jest.isolateModulesAsync(async () => {
    jest.doMock('node:path', () => ({ ...win32, posix, win32 }));
    const onWindows = await import('../../scripts/schematics/nest-add/index.js');
    const { files, warnings } = run({ module: 'src/app.module.ts' }, PROJECT, onWindows.nestAdd);
    expect(warnings).toBe('');
    expect(files['src/app.module.ts']).toContain('DistributedLockModule.forRoot');
    expect(files['src/main.ts']).toContain('enableShutdownHooks');
  });
});

describe('main.ts', () => {
  const PASTE = expect.stringContaining('app.enableShutdownHooks();') as string;

  it('lets a stopping app wait for its locked methods', () => {
    expect(run({}).files['src/main.ts']).toContain('const app = await NestFactory.create(AppModule);\n  app.enableShutdownHooks();\n');
  });

  it.each([
    ['on request', { skipShutdownHooks: true }, '', MAIN],
    ['where it has the hooks', {}, '', MAIN.replace('await app.listen', 'app.enableShutdownHooks(); await app.listen')],
    ['where it makes the app in another way', {}, PASTE, MAIN.replace('const app = await ', 'return ')],
    ['where it makes two apps', {}, PASTE, MAIN.replace('await app', 'const other = await NestFactory.create(AppModule);\n  await app')],
  ])('is left alone %s, and what is to be pasted is said', (_, options, said, main) => {
    const { files, warnings } = run(options, { ...PROJECT, 'src/main.ts': main });
    expect(files['src/main.ts']).toBe(main);
    expect(warnings).toEqual(said);
    expect(files['src/app.module.ts']).toContain('DistributedLockModule.forRoot');
  });
});

describe('package.json', () => {
  it('gets ioredis, in order, and keeps its indentation', () => {
    const manifest = '{\n    "dependencies": {\n        "rxjs": "^7.8.1"\n    }\n}\n';
    const { files, installs } = run({}, { ...PROJECT, 'package.json': manifest });
    expect(files['package.json']).toBe(manifest.replace('"rxjs"', `"ioredis": "${supported.ioredis}",\n        "rxjs"`));
    expect(installs).toEqual([expect.objectContaining({ name: 'node-package' })]);
  });

  it('may begin with a byte order mark', () => {
    const { files } = run({}, { ...PROJECT, 'package.json': `\uFEFF${PROJECT['package.json']}` });
    expect(JSON.parse(files['package.json']!)).toHaveProperty('dependencies.ioredis');
    expect(files['src/app.module.ts']).toContain("namespace: 'shop:'");
  });

  it.each([
    ['postgres', 'pg'],
    ['mysql', 'mysql2'],
  ] as const)('gets the client of %s: %s', (store, client) => {
    const { files } = run({ store }, PROJECT);
    expect((JSON.parse(files['package.json']!) as { dependencies: object }).dependencies).toEqual({ [client]: supported[client] });
  });

  it.each([
    ['the store is memory', { store: 'memory' as const }, PROJECT['package.json']],
    ['it has ioredis', {}, '{"devDependencies":{"ioredis":"^5.4.0"}}'],
  ])('stays as it is, and nothing is installed, where %s', (_, options, manifest) => {
    const { files, installs } = run(options, { ...PROJECT, 'package.json': manifest });
    expect(files['package.json']).toBe(manifest);
    expect(installs).toEqual([]);
  });
});

/** Runs the schematic on a project in memory. */
function run(options: Options, project: Record<string, string> = PROJECT, add = nestAdd) {
  const files = { ...project };
  const said: string[] = [];
  const warnings: string[] = [];
  const installs: object[] = [];
  const tree = {
    read: (path: string) => (files[path.slice(1)] === undefined ? null : Buffer.from(files[path.slice(1)] as string)),
    overwrite: (path: string, content: string) => void (files[path.slice(1)] = content),
    getDir: (folder: string) => ({
      visit: (visitor: (path: string) => void) =>
        Object.keys(files)
          .filter((file) => `/${file}`.startsWith(`${folder}/`))
          .forEach((file) => visitor(`/${file}`)),
    }),
  };
  const logger = { info: (message: string) => void said.push(message), warn: (message: string) => void warnings.push(message) };
  add(options)(tree, { logger, addTask: (task) => installs.push(task.toConfiguration()) });
  return { files, installs, said: said.join('\n'), warnings: warnings.join('\n') };
}
