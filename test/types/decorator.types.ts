// Never run: `tsc` checks it, where each `@ts-expect-error` must stand above an error.
import { of, type Observable } from 'rxjs';
import { CronLock, DistributedLock, type DistributedLockOptions, type OnTimeout } from 'nestjs-distributed-lock';

interface Product {
  id: number;
  sku: string;
}

export class Compiles {
  @DistributedLock()
  async unannotated() {}
  @DistributedLock()
  promise(): Promise<number> {
    return Promise.resolve(1);
  }
  @DistributedLock()
  promiseLike(): PromiseLike<number> {
    return Promise.resolve(1);
  }
  @DistributedLock({ returns: 'observable' })
  observable(): Observable<number> {
    return of(1);
  }
  @DistributedLock()
  async *generator() {
    yield 1;
  }
  @DistributedLock({ returns: 'iterable' })
  iterable(): AsyncIterable<number> {
    return this.generator();
  }
  @DistributedLock()
  generic<T>(value: T): Promise<T> {
    return Promise.resolve(value);
  }
  overloaded(value: string): Promise<string>;
  overloaded(value: number): Promise<number>;
  @DistributedLock()
  async overloaded(value: unknown): Promise<unknown> {
    return value;
  }
  @DistributedLock()
  private async hidden() {}
  @DistributedLock()
  protected async [Symbol.for('named')](..._rest: unknown[]) {
    return this.hidden();
  }
}

interface WithId {
  id: string;
}

/** The compiler decides nothing of a type parameter of the class. */
export abstract class Generic<T extends WithId, Any> {
  @DistributedLock({ onTimeout: 'skip' })
  async maybe(): Promise<T | undefined> {
    return undefined;
  }
  @DistributedLock({ onTimeout: 'skip' })
  async maybeAny(): Promise<Any | void> {}
  @DistributedLock({ onTimeout: () => null })
  async orNull(): Promise<T | null> {
    return null;
  }
  @DistributedLock({ onTimeout: () => ({ id: 'busy' }) })
  async inAList(): Promise<T[] | WithId> {
    return [];
  }
  @DistributedLock({ paramLock: ['0.id', '1'] })
  async path(entity: T, _any: Any): Promise<T> {
    return entity;
  }
  @DistributedLock({ key: (entity: WithId) => entity.id })
  async key(entity: T): Promise<T> {
    return entity;
  }
  @DistributedLock<Generic<WithId, unknown>['named']>({ key: ({ id }) => id, onTimeout: 'skip' })
  async named(_entity: T): Promise<T | undefined> {
    return undefined;
  }

  // @ts-expect-error never undefined
  @DistributedLock({ onTimeout: 'skip' })
  async always(entity: T): Promise<T> {
    return entity;
  }
  // @ts-expect-error sync
  @DistributedLock()
  sync(entity: T): T {
    return entity;
  }
  // @ts-expect-error no such parameter
  @DistributedLock({ paramLock: ['1'] })
  async noParameter(_sku: string): Promise<T | undefined> {
    return undefined;
  }
  // @ts-expect-error the parameters of another method
  @DistributedLock({ key: (id: number) => id })
  async otherKey(_sku: string): Promise<T | undefined> {
    return undefined;
  }
  // @ts-expect-error the result of another method
  @DistributedLock({ onTimeout: () => 'busy' })
  async otherResult(_entity: T): Promise<number> {
    return 5;
  }
}

declare const choice: OnTimeout;

export class Skips {
  @DistributedLock({ onTimeout: 'skip' })
  async nothing() {}
  @DistributedLock<Skips['maybe']>({ onTimeout: 'skip' })
  async maybe(): Promise<number | undefined> {
    return 5;
  }
  @DistributedLock({ onTimeout: 'skip' })
  async *stream(): AsyncGenerator<number> {
    yield 5;
  }
  @DistributedLock({ onTimeout: choice })
  async chosen() {
    return 5;
  }
  @CronLock({ minHold: 5000, value: 'report' })
  async report() {}
}

const busy = () => new Error('busy');

export class OtherResults {
  @DistributedLock({ onTimeout: () => 0 })
  async number() {
    return 5;
  }
  @DistributedLock({ onTimeout: async () => 'busy' })
  async word(): Promise<'sold' | 'busy'> {
    return 'sold';
  }
  @DistributedLock({ onTimeout: () => ({ state: 'busy' }) })
  async object(): Promise<{ state: 'sold' | 'busy' }> {
    return { state: 'sold' };
  }
  @DistributedLock<OtherResults['named']>({ onTimeout: ({ args }) => (args.length ? { state: 'busy' } : Promise.resolve(null)) })
  async named(_sku: string): Promise<{ state: 'sold' | 'busy' } | null> {
    return { state: 'sold' };
  }
  @DistributedLock<OtherResults['failing']>({
    onTimeout: () => {
      throw busy();
    },
  })
  async failing(_sku: string) {
    return 5;
  }
  @DistributedLock({
    onTimeout: () => {
      throw busy();
    },
  })
  async fails() {
    return 5;
  }
  @DistributedLock({ onTimeout: () => 'ignored' })
  async nothing() {}
  @DistributedLock({ onTimeout: () => ['busy'] })
  async *stream(): AsyncGenerator<string> {
    yield 'sold';
  }
  @DistributedLock({ onTimeout: ({ target }) => (target as { last: unknown }).last })
  async last() {
    return 5;
  }
  @DistributedLock({ onTimeout: () => 'busy' })
  async generic<T>(value: T): Promise<T> {
    return value;
  }
}

export class SyncMethods {
  // @ts-expect-error not on every path
  @DistributedLock()
  sometimes(now: boolean): number | Promise<number> {
    return now ? 1 : Promise.resolve(1);
  }

  // @ts-expect-error sync
  @DistributedLock({ returns: 'promise' })
  evenIfItSaysSo(): number {
    return 1;
  }
}

export class OtherPlaces {
  // @ts-expect-error a getter
  @DistributedLock()
  get getter() {
    return Promise.resolve(1);
  }

  // @ts-expect-error a field
  @DistributedLock()
  field = async () => undefined;

  // @ts-expect-error a parameter
  async parameter(@DistributedLock() _sku: string) {}
}

// @ts-expect-error a class
@DistributedLock()
export class WholeClass {}

export class Keys {
  @DistributedLock<Keys['reduce']>({ key: (product, units) => [product.sku, product.id, units.toFixed()] })
  async reduce(_product: Product, _units: number) {}

  @DistributedLock<Keys['optional']>({ key: (product) => product?.sku ?? 'none' })
  async optional(_product?: Product) {}

  @DistributedLock<Keys['rest']>({ key: (...skus) => skus })
  async rest(..._skus: string[]) {}

  @DistributedLock<Keys['bigint']>({ key: (id, shelf) => [id, shelf] })
  async bigint(_id: bigint, _shelf: string) {}

  // @ts-expect-error no such property
  @DistributedLock<Keys['missing']>({ key: (product) => product.colour })
  async missing(_product: Product) {}

  // @ts-expect-error may be undefined
  @DistributedLock<Keys['maybe']>({ key: (product) => product?.sku })
  async maybe(_product?: Product) {}

  // @ts-expect-error an object is no part
  @DistributedLock<Keys['object']>({ key: (product) => product })
  async object(_product: Product) {}

  // @ts-expect-error the type of another method
  @DistributedLock<Keys['reduce']>({ key: (product) => product.id })
  async other(_sku: string) {}

  // @ts-expect-error the type of a sync method
  @DistributedLock<Keys['sync']>({ key: (sku) => sku })
  async typedBySync(_sku: string) {}
  sync(_sku: string): void {}
}

interface Order {
  id: number;
  customer: { name: string; address?: { zip: string; lines: string[] } };
  items: { sku: string; units: number }[];
  labels: Record<string, string>;
  total(): number;
}

export class Untyped {
  @DistributedLock({ key: (product: Product) => product.sku })
  async first(_product: Product, _units: number) {}

  @DistributedLock({ key: (product, ...rest) => [(product as Product).sku, rest.length] })
  async unannotated(_product: Product, _units: number) {}

  // @ts-expect-error the method has one parameter
  @DistributedLock({ key: (_product: Product, units: number) => units })
  async one(_product: Product) {}
}

export class Paths {
  @DistributedLock({
    paramLock: ['0', '1.sku', '0.customer', '0.customer.name', '0.customer.address.zip', '0.items.0.sku', '0.labels.colour'],
  })
  async inferred(_order: Order, _product?: Product) {}

  @DistributedLock({ paramLock: ['0.anything', '1.any.thing.at.all', '2.id'] })
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  async loose(_a: any, _b: unknown, _c: object) {}

  @DistributedLock({ paramLock: ['5.id'] })
  async rest(..._orders: Order[]) {}

  @DistributedLock({ paramLock: ['0.customer.address.lines.3'] })
  async deep(_order: Order) {}

  @DistributedLock({ paramLock: ['0.id'] })
  async either(_product: Product | { id: string } | null) {}

  // @ts-expect-error no such parameter
  @DistributedLock({ paramLock: ['0', '1'] })
  async tooMany(_order: Order) {}

  // @ts-expect-error a function has no stable form
  @DistributedLock({ paramLock: ['0.total'] })
  async method(_order: Order) {}

  // @ts-expect-error a text has no parts
  @DistributedLock({ paramLock: ['0.length'] })
  async leaf(_sku: string) {}

  // @ts-expect-error no such property, by the type given
  @DistributedLock<Paths['explicitlyMissing']>({ paramLock: ['0.colour'] })
  async explicitlyMissing(_order: Order) {}
}

export const right: DistributedLockOptions[] = [
  { prefix: 'a', value: 'b', paramLock: true, store: 'second', returns: 'iterable' },
  { paramLock: ['0.id', '1'] as const, keyTimeout: 10, retryCount: 0, retryInterval: 1, waitTimeout: Infinity },
  { onTimeout: 'skip', onLost: 'ignore', reentrant: false, fair: true, minHold: 0, maxHold: 1 },
  { onTimeout: ({ key, args, target, method, error }) => [key.length, args.length, target, method, error.code] },
];

export const wrong: DistributedLockOptions[] = [
  // @ts-expect-error a number
  { fair: 1 },
  // @ts-expect-error a text
  { keyTimeout: '10s' },
  // @ts-expect-error another word
  { onTimeout: 'ignore' },
  // @ts-expect-error it is given an object
  { onTimeout: (key: string) => key },
  // @ts-expect-error a symbol
  { value: Symbol('value') },
  // @ts-expect-error a list of numbers
  { paramLock: [0] },
  // @ts-expect-error no function
  { key: 'sku' },
  // @ts-expect-error another word
  { returns: 'stream' },
  // @ts-expect-error a default may be for every call, a signal is for one
  { signal: new AbortController().signal },
];
