// The lock module gets into the imports of a module class and the filter into its providers, and the file keeps its style.
import ts from 'typescript';
import { addLockModule } from '../../scripts/schematics/nest-add/root-module.js';

const FOR_ROOT = `DistributedLockModule.forRoot({
      store: memoryStore(),
    })`;
const FILTER = '{ provide: APP_FILTER, useClass: LockExceptionFilter }';
const ALONE = `imports: [\n    ${FOR_ROOT},\n  ],`;

it.each([
  ['without metadata', '@Module()', ALONE],
  ['with empty metadata', '@Module({})', ALONE],
  ['without imports', '@Module({\n  providers: [A],\n})', `@Module({\n  ${ALONE}\n  providers: [`],
  ['without imports, on one line', '@Module({ providers: [A] })', `@Module({\n  ${ALONE}\n  providers: [`],
  ['with no imports yet', '@Module({\n  imports: [],\n})', ALONE],
  ['with imports on one line', '@Module({\n  imports: [A, b([1, 2])],\n})', `imports: [\n    A,\n    b([1, 2]),\n    ${FOR_ROOT},\n  ],`],
  [
    'with imports on lines of their own',
    '@Module({\n  imports: [\n    A,\n    B.forRoot({\n      c: 1,\n    }),\n  ],\n})',
    `imports: [\n    A,\n    B.forRoot({\n      c: 1,\n    }),\n    ${FOR_ROOT},\n  ],`,
  ],
  [
    'with imports without a comma after the last',
    '@Module({\n  imports: [\n    A,\n    ...MORE\n  ]\n})',
    `imports: [\n    A,\n    ...MORE,\n    ${FOR_ROOT}\n  ]`,
  ],
  [
    'with a comment in its imports',
    '@Module({\n  imports: [\n    A, // the first\n    // B,\n  ],\n})',
    `imports: [\n    A, // the first\n    ${FOR_ROOT},\n    // B,\n  ],`,
  ],
  [
    'with a comment beside the last import, without a comma',
    '@Module({\n  imports: [\n    A // the first\n  ]\n})',
    `imports: [\n    A, // the first\n    ${FOR_ROOT}\n  ]`,
  ],
  [
    'with nothing but a comment in its imports',
    '@Module({\n  imports: [\n    // none\n  ],\n})',
    `imports: [\n    // none\n    ${FOR_ROOT},\n  ],`,
  ],
  ['with a quoted name', "@Module({\n  'imports': [],\n})", `'imports': [\n    ${FOR_ROOT},\n  ],`],
  [
    'with other decorators',
    '@Global()\n@Module({\n  imports: [] })',
    `@Global()\n@Module({\n  providers: [\n    ${FILTER},\n  ],\n  imports: [\n    ${FOR_ROOT},\n  ] })`,
  ],
])('a module class %s gets the lock module into its imports and the filter into its providers', (_, before, after) => {
  const result = addLockModule(ts, fileOf(before), { store: 'memory' });
  expect(result).toContain(after);
  expect(mistakesIn(result)).toEqual([]);
  expect(result).toMatch(/providers: \[[^\]]*\{ provide: APP_FILTER, useClass: LockExceptionFilter \},?\s*\]/);
});

it.each([
  ['redis', 'url: process.env.REDIS_URL!,'],
  ['postgres', "url: process.env.DATABASE_URL!,\n        schema: 'create',"],
  ['mysql', "url: process.env.DATABASE_URL!,\n        schema: 'create',"],
] as const)('a module that the Nest CLI has generated looks as if written by hand, with %s', (store, options) => {
  const source = fileOf('@Module({\n  imports: [],\n  controllers: [AppController],\n  providers: [AppService],\n})');
  expect(addLockModule(ts, source, { store, namespace: 'shop:' })).toBe(
    fileOf(
      `@Module({
  imports: [
    DistributedLockModule.forRoot({
      store: ${store}Store({
        ${options}
      }),
      namespace: 'shop:',
    }),
  ],
  controllers: [AppController],
  providers: [
    AppService,
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})`,
      `
import { APP_FILTER } from '@nestjs/core';
import {
  DistributedLockModule,
  LockExceptionFilter,
} from 'nestjs-distributed-lock';
import { ${store}Store } from 'nestjs-distributed-lock/${store}';`,
    ),
  );
});

it('a module with a ConfigModule gets the address from its service', () => {
  const config = "\nimport { ConfigModule } from '@nestjs/config';";
  const source = fileOf('@Module({\n  imports: [\n    ConfigModule.forRoot(),\n  ],\n})', config);
  const result = addLockModule(ts, source, { store: 'postgres', namespace: 'shop:' });
  expect(result).toContain("import { ConfigService } from '@nestjs/config';");
  expect(result).toContain(`    DistributedLockModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        store: postgresStore({
          url: config.getOrThrow<string>('DATABASE_URL'),
          schema: 'create',
        }),
        namespace: 'shop:',
      }),
    }),`);
  expect(mistakesIn(result)).toEqual([]);
  expect(addLockModule(ts, source, { store: 'memory' })).toContain('DistributedLockModule.forRoot({');
});

describe('the style of the file', () => {
  it('is kept: quotes, ends of statements, ends of lines, tabs', () => {
    const source =
      'import { Module } from "@nestjs/common"\r\n\r\n@Module({\r\n\timports: [\r\n\t\tA,\r\n\t],\r\n})\r\nexport class AppModule {}\r\n';
    expect(addLockModule(ts, source, { store: 'redis', namespace: 'shop:' }).split('\r\n')).toEqual([
      'import { Module } from "@nestjs/common"',
      'import { APP_FILTER } from "@nestjs/core"',
      'import {',
      '\tDistributedLockModule,',
      '\tLockExceptionFilter,',
      '} from "nestjs-distributed-lock"',
      'import { redisStore } from "nestjs-distributed-lock/redis"',
      '',
      '@Module({',
      '\tproviders: [',
      `\t\t${FILTER},`,
      '\t],',
      '\timports: [',
      '\t\tA,',
      '\t\tDistributedLockModule.forRoot({',
      '\t\t\tstore: redisStore({',
      '\t\t\t\turl: process.env.REDIS_URL!,',
      '\t\t\t}),',
      '\t\t\tnamespace: "shop:",',
      '\t\t}),',
      '\t],',
      '})',
      'export class AppModule {}',
      '',
    ]);
  });

  it('does not hide a name that is imported already', () => {
    const source = fileOf(
      '@Module({ imports: [] })',
      `\nimport { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';`,
    );
    const result = addLockModule(ts, source, { store: 'memory' });
    expect(result.match(/import .*DistributedLockModule/g)).toHaveLength(1);
    expect(result).toContain("import { LockExceptionFilter } from 'nestjs-distributed-lock';");
  });

  it('puts the imports behind a comment on the last one', () => {
    const source = fileOf('@Module({ imports: [] })', ' // Nest');
    expect(addLockModule(ts, source, { store: 'memory' })).toContain("'@nestjs/common'; // Nest\nimport { APP_FILTER }");
  });
});

it('the class is found by its name where a file has several', () => {
  const source = fileOf('@Module({ imports: [] })\nexport class Other {}\n\n@Module({ imports: [] })');
  const [other, app] = addLockModule(ts, source, { store: 'memory' }, 'AppModule').split('export class Other {}');
  expect([other?.includes('forRoot'), app?.includes('forRoot')]).toEqual([false, true]);
  expect(() => addLockModule(ts, source, { store: 'memory' })).toThrow('it has several classes with @Module()');
});

it.each([
  ['@Module(metadata)', 'the argument of @Module() is not written out in place'],
  ['@Module({ imports })', 'the imports of @Module() are not an array written out in place'],
  ['@Module({ imports: [A].concat(B) })', 'the imports of @Module() are not an array written out in place'],
  ['@Module({ providers })', 'the providers of @Module() are not an array written out in place'],
  ['@Injectable()', 'it has no class with @Module()'],
])('%s is not edited', (decorator, why) => {
  expect(() => addLockModule(ts, fileOf(decorator), { store: 'memory' })).toThrow(why);
});

function fileOf(decorator: string, imports = ''): string {
  return `import { Module } from '@nestjs/common';${imports}\n\n${decorator}\nexport class AppModule {}\n`;
}

function mistakesIn(source: string): string[] {
  const { diagnostics = [] } = ts.transpileModule(source, { reportDiagnostics: true, compilerOptions: { experimentalDecorators: true } });
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
