import type { Type } from '@nestjs/common';
import { firstValueFrom, type Observable } from 'rxjs';
import { LockConfigError } from 'nestjs-distributed-lock';
import { boot } from './boot.js';
import { COMPILERS, compileWithTypes, run } from './compiled.js';

const IMPORTS = {
  'import type': "import type { Observable } from 'rxjs';",
  'import { type }': "import { type Observable } from 'rxjs';",
};
const compilers: [string, (sources: string[]) => string[]][] = [
  ['tsc', compileWithTypes],
  ...COMPILERS.map(({ name, legacy }): [string, (sources: string[]) => string[]] => [
    `${name}, each file alone`,
    (sources) => sources.map(legacy),
  ]),
];

interface Feed {
  watch(): Observable<string>;
}

/** One class whose method says nothing but by its declared type, and one with the option. */
const source = `
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
  }`;

describe.each(compilers)('compiled by %s', (_compiler, compile) => {
  let codes: string[];
  beforeAll(() => (codes = compile(Object.values(IMPORTS).map((line) => line + source))));
  const classes = (by: string) => run<Record<'Feed' | 'SaidFeed', Type<Feed>>>(codes[Object.keys(IMPORTS).indexOf(by)]!);

  it.each(Object.keys(IMPORTS))('a return type from %s says nothing: the option returns does, or the default of the module', async (by) => {
    const { Feed, SaidFeed } = classes(by);
    const { get, acquired } = await boot({ providers: [SaidFeed] });
    expect(await firstValueFrom(get(SaidFeed).watch())).toBe('news');
    expect(acquired).toEqual(['SaidFeed.watch-locks']);
    const other = await boot({ providers: [Feed] }, { defaults: { returns: 'observable' } });
    expect(await firstValueFrom(other.get(Feed).watch())).toBe('news');
    expect(other.acquired).toEqual(['Feed.watch-locks']);
  });

  it.each(Object.keys(IMPORTS))('a return type from %s says nothing: without the option the call rejects, and names it', async (by) => {
    const { Feed } = classes(by);
    const { get, isTaken } = await boot({ providers: [Feed] });
    const error: unknown = await Promise.resolve(get(Feed).watch()).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toHaveProperty('message', expect.stringMatching(/Feed\.watch: .*returns: 'observable'/));
    expect(await isTaken('Feed.watch-locks')).toBe(false);
  });
});

describe('a declared type that is no class of promises, Observables or async iterables', () => {
  const types: [string, string][] = [
    ['Function', 'Function'],
    ['Object', 'Object'],
    ['a class', 'Receipt'],
    ['a Promise', 'Promise'],
    ['a string', 'String'],
    ['something without a prototype', '(() => undefined)'],
  ];
  it.each(types)('%s: "returns" wins', async (_what, type) => {
    const Feed = run<{ Feed: Type<Feed> }>(
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
    ).Feed;
    const { get, acquired } = await boot({ providers: [Feed] });
    expect(await firstValueFrom(get(Feed).watch())).toBe('news');
    expect(acquired).toEqual(['Feed.watch-locks']);
  });
});
