import ts from 'typescript';
import { DistributedLock } from 'nestjs-distributed-lock';
import { boot } from './boot.js';
import { refusalOf } from './refusal.js';

/** As a caller without types sees it. */
const Lock = DistributedLock as unknown as (options?: object) => MethodDecorator & PropertyDecorator & ClassDecorator & ParameterDecorator;

describe('@DistributedLock on something that cannot be locked', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'a static method',
      () => {
        class Shop {
          @Lock()
          static async buy() {}
        }
        return Shop;
      },
      /Shop\.buy: a static method/,
    ],
    [
      'a getter',
      () => {
        class Shop {
          @Lock()
          get stock() {
            return Promise.resolve(1);
          }
        }
        return Shop;
      },
      /Shop\.stock: .*not getters/,
    ],
    [
      'a setter',
      () => {
        class Shop {
          @Lock()
          set stock(_value: number) {}
        }
        return Shop;
      },
      /Shop\.stock: .*not getters, setters/,
    ],
    [
      'a field',
      () => {
        class Shop {
          @Lock()
          buy = async () => undefined;
        }
        return Shop;
      },
      /Shop\.buy: .*fields/,
    ],
    [
      'a parameter',
      () => {
        class Shop {
          async buy(@Lock() _sku: string) {}
        }
        return Shop;
      },
      /Shop\.buy: only methods/,
    ],
    [
      'a generator',
      () => {
        class Shop {
          @Lock()
          *buy() {}
        }
        return Shop;
      },
      /Shop\.buy: the method is synchronous/,
    ],
    [
      'a method that returns a string',
      () => {
        class Shop {
          @Lock()
          buy(): string {
            return '';
          }
        }
        return Shop;
      },
      /Shop\.buy: the method is synchronous/,
    ],
    [
      'a method that returns a list',
      () => {
        class Shop {
          @Lock()
          buy(): Promise<string>[] {
            return [];
          }
        }
        return Shop;
      },
      /Shop\.buy: the method is synchronous/,
    ],
    [
      'a method that returns a class of its own',
      () => {
        class Receipt {}
        class Shop {
          @Lock()
          buy(): Receipt {
            return new Receipt();
          }
        }
        return Shop;
      },
      /Shop\.buy: the method is synchronous/,
    ],
    [
      'an async method that is said to return an Observable',
      () => {
        class Shop {
          @Lock({ returns: 'observable' })
          async buy() {}
        }
        return Shop;
      },
      /Shop\.buy: "returns" is "observable"/,
    ],
    [
      'an async generator that is said to return a Promise',
      () => {
        class Shop {
          @Lock({ returns: 'promise' })
          async *buy() {}
        }
        return Shop;
      },
      /Shop\.buy: "returns" is "promise"/,
    ],
    [
      'a method that two decorators say different things of',
      () => {
        class Shop {
          @Lock({ returns: 'observable' })
          @Lock({ returns: 'iterable' })
          buy() {}
        }
        return Shop;
      },
      /Shop\.buy: "returns" is "observable"/,
    ],
  ])('is refused when the class is defined: %s', (_what, define, message) => {
    expect(refusalOf(define)).toMatch(message);
  });

  it('is refused on a class', () => {
    expect(refusalOf(() => Lock()(class Shop {}))).toMatch(/Shop/);
  });

  it.each([
    ['method', 'class Shop { @lock async buy() {} }'],
    ['static method', 'class Shop { @lock static async buy() {} }'],
    ['field', 'class Shop { @lock buy = async () => 1; }'],
    ['accessor', 'class Shop { @lock accessor buy = async () => 1; }'],
    ['getter', 'class Shop { @lock get buy() { return 1; } }'],
    ['class', '@lock class Shop {}'],
  ])('is refused by name as an ECMAScript decorator: %s', (_kind, source) => {
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { target: ts.ScriptTarget.ES2022, experimentalDecorators: false },
    });
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- what a project without `experimentalDecorators` runs
    const define = new Function('lock', outputText) as (lock: unknown) => void;
    expect(refusalOf(() => define(DistributedLock()))).toMatch(/needs legacy decorators.*"experimentalDecorators"/);
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

  it('may have methods named alike, of which only the decorated one is locked', async () => {
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
