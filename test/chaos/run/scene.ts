import type { Child } from '../../support/child.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { Strike } from '../faults/fault.js';
import type { HistoryWriter } from '../history/writer.js';
import type { Stage } from '../stores/store.js';
import type { FromWorker } from '../worker/order.js';
import { Slot, type SlotOptions } from './slot.js';

/** The running system that faults strike: a stage with its servers, and workers in slots. */
export class Scene {
  private readonly slots: Slot[];
  private wide: Promise<void> = Promise.resolve();
  private readonly blocked = new WeakMap<object, Promise<void>>();
  private readonly pauses = new Set<() => void>();

  constructor(
    readonly stage: Stage,
    readonly resource: RedisServer,
    readonly history: HistoryWriter,
    slots: readonly SlotOptions[],
    /** says by how many ms the wall clock of a worker is wrong, where it can be */
    readonly setClock: (slot: number, ms: number) => void,
  ) {
    this.slots = slots.map((options) => new Slot(options, stage, resource, history));
  }

  get pidsOfKilled(): Set<number> {
    return new Set(this.slots.flatMap(({ killed }) => killed));
  }

  async startWorkers(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.start()));
  }

  worker(slot: number): Child<FromWorker> {
    return this.slots[slot]!.child;
  }

  /** SIGKILL; another process replaces it. */
  async replaceWorker(slot: number): Promise<void> {
    await this.slots[slot]!.replace();
  }

  /** One after the other: a worker that is blocked receives the next one when it is free again. */
  async blockWorker(slot: number, ms: number): Promise<void> {
    const worker = this.worker(slot);
    const block = async (): Promise<void> => {
      if (worker.running) worker.send({ type: 'busy', ms });
      await this.pause(ms);
    };
    const blocked = (this.blocked.get(worker) ?? Promise.resolve()).then(block);
    this.blocked.set(worker, blocked);
    await blocked;
  }

  async stopWorker(slot: number, duration: number): Promise<void> {
    const worker = this.worker(slot);
    worker.pause();
    await this.pause(duration);
    worker.resume();
  }

  /** Resolves after so many milliseconds, or when the run is called off. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.pauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.pauses.add(end);
    });
  }

  /** Never rejects: a fault that could not be made is noted. Those that concern all workers come one after the other. */
  strike(n: number, strike: Strike): Promise<void> {
    const { fault } = strike;
    const act = async (): Promise<void> => {
      const { name, group } = fault;
      const target = fault.isWide ? 'all' : this.slots[strike.slot]!.name;
      this.history.write({ e: 'fault', n, name, group, target, detail: `${strike.duration} ms` });
      let failed: string | undefined;
      await fault.strike(this, strike).catch((error: unknown) => (failed = String(error)));
      this.history.write({ e: 'healed', n, name, failed });
    };
    return fault.isWide ? (this.wide = this.wide.then(act)) : act();
  }

  /** Tells all workers to close their locks, and waits until they have ended. */
  async closeWorkers(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.close()));
  }

  async stop(): Promise<void> {
    for (const end of this.pauses) end();
    await Promise.all(this.slots.map((slot) => slot.discard()));
    await Promise.all(this.stage.proxies?.map((proxy) => proxy.close()) ?? []);
    await Promise.all([this.stage.stop(), this.resource.stop()]);
  }
}
