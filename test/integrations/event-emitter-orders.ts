import { Inject, Injectable } from '@nestjs/common';
import { EventEmitter2, OnEvent } from '@nestjs/event-emitter';
import { currentLease, DistributedLock, LockTimeoutError } from 'nestjs-distributed-lock';

export interface OrderPlaced {
  orderId: string;
}

@Injectable()
export class InvoiceListener {
  readonly invoices: string[] = [];

  // #region event-listener
  /** Locks by order: one call at a time writes an invoice. */
  @OnEvent('order.placed', { suppressErrors: false })
  @DistributedLock<InvoiceListener['onOrderPlaced']>({
    value: 'invoice',
    key: ({ orderId }) => orderId,
    keyTimeout: 10_000,
    waitTimeout: 0,
  })
  async onOrderPlaced({ orderId }: OrderPlaced): Promise<string> {
    return this.write(orderId);
  }
  // #endregion

  private async write(orderId: string): Promise<string> {
    this.invoices.push(`${orderId} under ${currentLease()?.key ?? 'no lock'}`);
    return `invoice of ${orderId}`;
  }
}

@Injectable()
export class OrderDesk {
  constructor(@Inject(EventEmitter2) private readonly events: EventEmitter2) {}

  // #region event-emitter
  /** emitAsync waits for the listeners and their locks, and returns their results. */
  async submit(orderId: string): Promise<unknown[]> {
    try {
      return await this.events.emitAsync('order.placed', { orderId });
    } catch (error) {
      if (error instanceof LockTimeoutError) return []; // another caller is writing this invoice
      throw error;
    }
  }
  // #endregion
}
