import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { currentLease, DistributedLock, LockLostError, Locks } from 'nestjs-distributed-lock';

/** The rest of the shop. */
@Injectable()
export class Shop {
  readonly lines: string[] = [];
  async check(id: string): Promise<void> {
    await this.note(`checked ${id}`);
  }
  async ship(id: string, token: number | null): Promise<void> {
    await this.note(`shipped ${id} with ${token}`);
  }
  async note(line: string): Promise<void> {
    this.lines.push(line);
  }
}

// #region hand-over-request
export interface Shipment {
  id: string;
  lease: string;
}

@Injectable()
export class Orders {
  constructor(
    @Inject(Shop) private readonly shop: Shop,
    @InjectQueue('orders') private readonly queue: Queue<Shipment>,
  ) {}

  @DistributedLock<Orders['submit']>({ value: 'order', key: (id) => id, waitTimeout: 2_000 })
  async submit(id: string): Promise<void> {
    await this.shop.check(id);
    const lease = await currentLease()!.handOver({ within: 60_000 }); // a text; the key stays taken for at most a minute
    await this.queue.add('ship', { id, lease }, { attempts: 3 });
  }
}
// #endregion

// #region hand-over-job
@Processor('orders')
export class Shipping extends WorkerHost {
  constructor(
    @Inject(Shop) protected readonly shop: Shop,
    @Inject(Locks) protected readonly locks: Locks,
  ) {
    super();
  }

  async process({ data: { id, lease } }: Job<Shipment>): Promise<void> {
    await using held = await this.locks.adopt(lease, { keyTimeout: 10_000 }); // renewed from here on, released at the end of the block
    await this.shop.ship(id, held.fencingToken);
  }
}
// #endregion

@Processor('orders')
export class PatientShipping extends Shipping {
  // #region hand-over-again
  override async process({ data: { id, lease } }: Job<Shipment>): Promise<void> {
    await using held = await this.locks.adopt(lease).catch((error) => {
      if (!(error instanceof LockLostError)) throw error;
      return this.locks.acquire(`order-${id}-locks`, { waitTimeout: 30_000 }); // an earlier run of this job has adopted it: wait for its end
    });
    await this.shop.ship(id, held.fencingToken);
  }
  // #endregion
}
