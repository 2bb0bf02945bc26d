import { DistributedLock } from 'nestjs-distributed-lock';
import { boot } from './boot.js';
import { COMPILERS, run } from './compiled.js';
import { refusalOf } from './refusal.js';

const IMPORTS = `import { DistributedLock as Lock } from 'nestjs-distributed-lock';\n`;

describe('@DistributedLock on a method that cannot be locked', () => {
  it.each<[string, string, RegExp]>([
    ['a generator', '@Lock() *buy() {}', /Shop\.buy: the method is synchronous/],
    ['a method that returns a string', "@Lock() buy(): string { return ''; }", /Shop\.buy: the method is synchronous/],
    ['a method that returns a list', '@Lock() buy(): Promise<string>[] { return []; }', /Shop\.buy: the method is synchronous/],
    [
      'a method that returns a class of its own',
      '@Lock() buy(): Receipt { return new Receipt(); }',
      /Shop\.buy: the method is synchronous/,
    ],
    [
      'an async method that is said to return an Observable',
      "@Lock({ returns: 'observable' }) async buy() {}",
      /Shop\.buy: "returns" is "observable"/,
    ],
    [
      'an async generator that is said to return a Promise',
      "@Lock({ returns: 'promise' }) async *buy() {}",
      /Shop\.buy: "returns" is "promise"/,
    ],
    [
      'a method that two decorators say different things of',
      "@Lock({ returns: 'observable' }) @Lock({ returns: 'iterable' }) buy() {}",
      /Shop\.buy: "returns" is "observable"/,
    ],
  ])('is refused when the class is defined: %s', (_what, method, message) => {
    const source = `${IMPORTS} class Receipt {} class Shop { ${method} }`;
    for (const { legacy } of COMPILERS) expect(refusalOf(() => run(legacy(source)))).toMatch(message);
  });
});

describe('the class of a locked method', () => {
  it('is checked at boot without its getters being triggered', async () => {
    const seen: string[] = [];
    class Shop {
      get costly(): string {
        seen.push('prototype');
        throw new Error('too early');
      }
      @DistributedLock()
      async buy() {
        return 'bought';
      }
    }
    class Closed extends Shop {}
    Object.defineProperty(Closed.prototype, 'buy', { get: () => seen.push('override') });
    const plain = Object.defineProperty(new Shop(), 'own', { enumerable: true, get: () => seen.push('own') });
    const { app } = await boot({ providers: [Shop, Closed, { provide: 'plain', useValue: plain }] });
    expect(seen).toEqual([]);
    expect(await app.get<Shop>('plain').buy()).toBe('bought');
  });

  it('may have other methods, which are not locked', async () => {
    class Shop {
      @DistributedLock()
      async buy() {}
      async look() {}
    }
    const { get, acquired } = await boot({ providers: [Shop] });
    await get(Shop).look();
    expect(acquired).toEqual([]);
    await get(Shop).buy();
    expect(acquired).toEqual(['Shop.buy-locks']);
  });
});
