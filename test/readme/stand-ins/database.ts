import { AsyncLocalStorage } from 'node:async_hooks';
import { Gate } from './gate.js';

/** What the others see changes when a transaction commits, and each commit stops at a gate. */
export class Database {
  readonly commits = new Gate();
  private readonly units = new Map<string, number>();
  private readonly current = new AsyncLocalStorage<Transaction>();

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const changes = new Map<string, number>();
    const tx: Transaction = {
      unitsOf: async (sku) => changes.get(sku) ?? this.units.get(sku) ?? 0,
      setUnits: async (sku, units) => void changes.set(sku, units),
    };
    const result = await this.current.run(tx, () => work(tx));
    await this.commits.pass();
    for (const [sku, units] of changes) this.units.set(sku, units);
    return result;
  }

  /** The transaction that the caller is in. */
  get tx(): Transaction {
    const tx = this.current.getStore();
    if (!tx) throw new Error('There is no transaction.');
    return tx;
  }

  stock(sku: string, units: number): void {
    this.units.set(sku, units);
  }

  unitsOf(sku: string): number | undefined {
    return this.units.get(sku);
  }
}

export interface Transaction {
  unitsOf(sku: string): Promise<number>;
  setUnits(sku: string, units: number): Promise<void>;
}

/** As those of the transaction libraries: the method runs in a transaction, which commits when the method has ended. */
export function Transactional(): MethodDecorator {
  return (_target, _name, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as (...args: unknown[]) => Promise<unknown>;
    descriptor.value = function (this: { db: Database }, ...args: unknown[]): Promise<unknown> {
      return this.db.transaction(() => method.apply(this, args));
    };
  };
}
