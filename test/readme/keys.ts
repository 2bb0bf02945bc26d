import { Injectable } from '@nestjs/common';
import { DistributedLock, LOCK_KEY } from 'nestjs-distributed-lock';

export interface Order {
  id: number;
  customer: { id: string };
  note?: string;
}

// #region lock-key
export class Product {
  constructor(
    readonly sku: string,
    readonly loadedAt: Date,
  ) {}

  /** As Java's hashCode: what a lock on a product goes by. */
  [LOCK_KEY](): string {
    return this.sku;
  }
}
// #endregion

@Injectable()
export class OrderService {
  // #region keys
  /** shop-OrderService.importAll-locks: one key for the method. */
  @DistributedLock({ prefix: 'shop-' })
  async importAll(): Promise<string> {
    return 'all are here';
  }

  /** shop-order-42-locks: a key that can be read, and used by others. */
  @DistributedLock<OrderService['ship']>({ prefix: 'shop-', value: 'order', key: (order) => order.id })
  async ship(order: Order): Promise<string> {
    return `${order.id} is on its way`;
  }

  /** shop-customer-<digest>-locks: a digest of what these paths lead to. */
  @DistributedLock({ prefix: 'shop-', value: 'customer', paramLock: ['0.customer.id', '1'] })
  async invoice(order: Order, year: number): Promise<string> {
    return `${order.customer.id} pays for ${year}`;
  }

  /** shop-product-<digest>-locks: a digest of all arguments; equal values, equal key. */
  @DistributedLock({ prefix: 'shop-', value: 'product', paramLock: true })
  async reprice(product: Product): Promise<string> {
    return `${product.sku} has a new price`;
  }
  // #endregion
}
