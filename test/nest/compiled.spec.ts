import '../support/virtual-time.js';
import type { Type } from '@nestjs/common';
import { transformSync } from '@swc/core';
import * as library from 'nestjs-distributed-lock';
import * as rxjs from 'rxjs';
import ts from 'typescript';
import { boot } from './boot.js';
import { expectRefused, refusalOf } from './refusal.js';

/** What the sources may import. */
const modules: Record<string, unknown> = { 'nestjs-distributed-lock': library, rxjs };

const transpile = (source: string, decorators: ts.CompilerOptions): string =>
  ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, isolatedModules: true, ...decorators },
  }).outputText;

const swc = (source: string, transform: object): string =>
  transformSync(source, {
    swcrc: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, transform, keepClassNames: true },
    module: { type: 'commonjs' },
  }).code;

/** To CommonJS, without a look at the types: `legacy` with `experimentalDecorators` and metadata, `standard` with the decorators of ECMAScript. */
const COMPILERS = [
  {
    name: 'tsc',
    legacy: (source: string) => transpile(source, { experimentalDecorators: true, emitDecoratorMetadata: true }),
    standard: (source: string) => transpile(source, { experimentalDecorators: false }),
  },
  {
    name: 'swc',
    legacy: (source: string) => swc(source, { legacyDecorator: true, decoratorMetadata: true }),
    standard: (source: string) => swc(source, { decoratorVersion: '2022-03' }),
  },
];

/** Runs a compiled module; returns what it exports. */
function run<Exports>(code: string): Exports {
  const exports = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- what a project with this compiler runs
  new Function('exports', 'require', code)(exports, (name: string) => modules[name]);
  return exports as Exports;
}

const DECORATORS = ['DistributedLock', 'ReadLock', 'WriteLock', 'Semaphore', 'LeaderOnly'];
const IMPORTS = `import { ${DECORATORS.join(', ')} } from 'nestjs-distributed-lock';\n`;
const EXAMPLES: Record<string, string> = { Semaphore: '{ permits: 5 }', LeaderOnly: "'jobs'" };

/** Where a decorator may stand that locks nothing there, and what is said about it. */
const TARGETS: [target: string, source: (decorator: string) => string, message: RegExp][] = [
  ['a class', (lock) => `${lock} class Shop { async buy() {} }`, / on class Shop: only methods can be locked, not whole classes/],
  [
    'a class without a name',
    (lock) => `export default ${lock} class { async buy() {} }`,
    / on class .*: only methods can be locked, not whole/,
  ],
  ['an arrow function in a property', (lock) => `class Shop { ${lock} buy = async () => 1; }`, / on Shop\.buy: only methods .*fields/],
  ['a static arrow function', (lock) => `class Shop { ${lock} static buy = async () => 1; }`, / on Shop\.buy: a static method/],
  ['a static method', (lock) => `class Shop { ${lock} static async buy() {} }`, / on Shop\.buy: a static method/],
  ['a getter', (lock) => `class Shop { ${lock} get buy() { return async () => 1; } }`, / on Shop\.buy: only methods .*getters/],
  ['a setter', (lock) => `class Shop { ${lock} set buy(value: unknown) {} }`, / on Shop\.buy: only methods .*setters/],
  ['a parameter', (lock) => `class Shop { async buy(${lock} sku: string) {} }`, / on Shop\.buy: only methods .*parameters/],
  [
    "a constructor's parameter",
    (lock) => `class Shop { constructor(${lock} sku: string) {} }`,
    / on Shop's constructor: only methods .*parameters/,
  ],
];
const STANDARD: [target: string, source: (decorator: string) => string][] = [
  ['a method', (lock) => `class Shop { ${lock} async buy() {} }`],
  ['a static method', (lock) => `class Shop { ${lock} static async buy() {} }`],
  ['a property', (lock) => `class Shop { ${lock} buy = async () => 1; }`],
  ['an accessor', (lock) => `class Shop { ${lock} accessor buy = async () => 1; }`],
  ['a getter', (lock) => `class Shop { ${lock} get buy() { return 1; } }`],
  ['a class', (lock) => `${lock} class Shop {}`],
];

// The decorators share what they refuse: one of them is enough for the slower compiler.
describe.each(COMPILERS)('compiled by $name', ({ name: compiler, legacy, standard }) => {
  const refusal = (source: string, compile = legacy) => refusalOf(() => run(compile(IMPORTS + source)));
  const decorators = compiler === 'tsc' ? ['DistributedLock'] : DECORATORS;
  const spellings = decorators.flatMap((name) => [
    [`@${name}`, `@${name}`],
    [`@${name}(${EXAMPLES[name] ?? ''})`, `@${name}()`],
  ]);

  it.each(spellings)('%s is refused on what is no method', (decorator, shown) => {
    for (const [, source, message] of TARGETS) {
      const text = refusal(source(decorator));
      expect(text).toMatch(message);
      expect(text).toContain(`${shown} on `);
    }
  });

  it.each(spellings)('%s is refused as an ECMAScript decorator, wherever it stands', (decorator, shown) => {
    for (const [, source] of STANDARD) {
      const text = refusal(source(decorator), standard);
      expect(text).toMatch(/needs legacy decorators.*"experimentalDecorators"/);
      expect(text).toContain(shown.replace('()', ''));
    }
  });

  it.each(decorators)('@%s needs parentheses on a method, and is accepted with them', (name) => {
    const example = `@${name}(${EXAMPLES[name] ?? ''})`;
    expect(refusal(`class Stock { @${name} async reduce() {} }`)).toBe(
      `@${name} on Stock.reduce needs parentheses: ${example}. [LOCK_CONFIG_METHOD]`,
    );
    const symbol = `const buy = Symbol('buy'); class Shop { @${name} async [buy]() {} }`;
    expect(refusal(symbol)).toContain(`@${name} on Shop.Symbol(buy) needs parentheses`);
    expect(run(legacy(`${IMPORTS} export class Shop { ${example} async buy(): Promise<void> {} }`))).toHaveProperty('Shop');
  });

  const lock = (returns?: string) => `@DistributedLock(${returns ? `{ returns: '${returns}' }` : ''})`;
  it.each<[string, string, RegExp]>([
    ['a generator', `${lock()} *buy() {}`, /Shop\.buy: the method is synchronous/],
    ['one that returns a string', `${lock()} buy(): string { return ''; }`, /Shop\.buy: the method is synchronous/],
    ['one that returns a list', `${lock()} buy(): Promise<string>[] { return []; }`, /Shop\.buy: the method is synchronous/],
    ['one that returns a class of its own', `${lock()} buy(): Receipt { return new Receipt(); }`, /Shop\.buy: the method is synchronous/],
    [
      'one that returns a Node stream',
      `${lock()} buy(): Stream { return new Stream(); }`,
      /Shop\.buy: not for a Node stream: declare AsyncIterable/,
    ],
    ['an async one that is said to return an Observable', `${lock('observable')} async buy() {}`, /Shop\.buy: "returns" is "observable"/],
    ['an async generator that is said to return a Promise', `${lock('promise')} async *buy() {}`, /Shop\.buy: "returns" is "promise"/],
    ['one of which two decorators say different things', `${lock('observable')} ${lock('iterable')} buy() {}`, /"returns" is "observable"/],
  ])('a method that cannot be locked is refused when the class is defined: %s', (_what, method, message) => {
    const classes = 'class Receipt {} class Stream { pipe() {} async *[Symbol.asyncIterator]() {} }';
    expect(refusal(`${classes} class Shop { ${method} }`)).toMatch(message);
  });
});

interface Feed {
  watch(): rxjs.Observable<string>;
}
type Feeds = Record<'Feed' | 'SaidFeed', Type<Feed>>;

const FEEDS = ["import type { Observable } from 'rxjs';", "import { type Observable } from 'rxjs';"].map(
  (line) => `${line}
  import { DistributedLock } from 'nestjs-distributed-lock';
  import { of } from 'rxjs';
  export class Feed {
    @DistributedLock()
    watch(): Observable<string> {
      return of('news');
    }
  }
  export class SaidFeed {
    @DistributedLock({ returns: 'observable' })
    watch(): Observable<string> {
      return of('news');
    }
  }`,
);

/** The method returns an Observable, and has taken its lock for it. */
async function expectLocked(feed: Type<Feed>, options?: Parameters<typeof boot>[1]): Promise<void> {
  const { get, acquired } = await boot({ providers: [feed] }, options);
  expect(await rxjs.firstValueFrom(get(feed).watch())).toBe('news');
  expect(acquired).toEqual([`${feed.name}.watch-locks`]);
}

it.each(COMPILERS)(
  'a return type that is imported as a type says nothing: "returns" does, or the default of the module, or else the call rejects (compiled by $name)',
  async ({ legacy }) => {
    for (const code of FEEDS.map(legacy)) {
      const { Feed, SaidFeed } = run<Feeds>(code);
      await expectLocked(SaidFeed);
      await expectLocked(Feed, { defaults: { returns: 'observable' } });
      const { get, isTaken } = await boot({ providers: [Feed] });
      await expectRefused(get(Feed).watch(), /Feed\.watch: .*returns: 'observable'/);
      expect(await isTaken('Feed.watch-locks')).toBe(false);
    }
  },
);

it.each([
  ['Function', 'Function'],
  ['Object', 'Object'],
  ['a class', 'Receipt'],
  ['a Promise', 'Promise'],
  ['a string', 'String'],
  ['something without a prototype', '(() => undefined)'],
])('"returns" wins over a declared type that is no Observable: %s', async (_what, type) => {
  const { Feed } = run<Feeds>(
    COMPILERS[0]!.legacy(`
      import { DistributedLock } from 'nestjs-distributed-lock';
      import { of } from 'rxjs';
      class Receipt {}
      void Receipt;
      export class Feed {
        @DistributedLock({ returns: 'observable' })
        @Reflect.metadata('design:returntype', ${type})
        watch() {
          return of('news');
        }
      }`),
  );
  await expectLocked(Feed);
});
