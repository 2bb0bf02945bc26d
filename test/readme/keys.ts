import { Injectable } from '@nestjs/common';
import { ClsServiceManager } from 'nestjs-cls';
import { DistributedLock, LOCK_KEY, type Locks } from 'nestjs-distributed-lock';

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

  /** Like hashCode in Java: products with the same sku share a lock. */
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

  /** shop-order-42-locks: a readable key, which other programs can use too. */
  @DistributedLock<OrderService['ship']>({ prefix: 'shop-', value: 'order', key: (order) => order.id })
  async ship(order: Order): Promise<string> {
    return `${order.id} is on its way`;
  }

  /** shop-invoice-C%2D1-2030-locks: several parts, each percent-encoded. */
  @DistributedLock<OrderService['invoice']>({ prefix: 'shop-', value: 'invoice', key: (order, year) => [order.customer.id, year] })
  async invoice(order: Order, year: number): Promise<string> {
    return `${order.customer.id} pays for ${year}`;
  }

  /** shop-parcel-<digest>-locks: a digest of the values at these paths. */
  @DistributedLock({ prefix: 'shop-', value: 'parcel', paramLock: ['0.customer.id', '1'] })
  async pack(order: Order, box: number): Promise<string> {
    return `${order.customer.id} gets box ${box}`;
  }

  /** shop-product-<digest>-locks: a digest of all arguments. */
  @DistributedLock({ prefix: 'shop-', value: 'product', paramLock: true })
  async reprice(product: Product): Promise<string> {
    return `${product.sku} has a new price`;
  }
  // #endregion
}

// #region keys-tenant
const tenant = (): string => ClsServiceManager.getClsService().get('tenant');

@Injectable()
export class TenantOrders {
  /** order-acme-42-locks in a request of acme. */
  @DistributedLock<TenantOrders['ship']>({ value: 'order', key: (id) => [tenant(), id] })
  async ship(id: number): Promise<string> {
    return `${id} is on its way`;
  }
}
// #endregion

// #region keys-shared
/** The key of OrderService.ship: nobody ships the order meanwhile. */
export async function changeOrder(locks: Locks, order: Order, work: () => Promise<void>): Promise<void> {
  await locks.using(`shop-order-${order.id}-locks`, work);
}
// #endregion
