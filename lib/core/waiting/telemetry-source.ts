import { watchdog } from '../holding/watchdog.js';
import type { LockEvents, LockListener } from '../model/events.js';
import type { ObservedCall, TelemetrySource } from '../model/telemetry.js';
import type { LockStore } from '../store/lock-store.js';
import { now } from '../util/clock.js';
import type { LockQueue } from './lock-queue.js';
import type { LockQueues } from './lock-queues.js';

const ELECTION = /-leader$/;

/** Whether a caller waits for another process: the store has refused the key. Those who wait for a holder of this process need no messages. */
const waitsAtStore = ({ contenders, outcome }: LockQueue): boolean =>
  contenders.length > 0 && outcome !== undefined && 'granted' in outcome;

/** Counts leases and waiters when it is asked: it keeps no list that could drift. */
export class LocksSource implements TelemetrySource {
  /** @param namespace of the keys. It is not part of the name of an election. */
  constructor(
    private readonly locksStore: LockStore,
    private readonly queues: LockQueues,
    private readonly namespace: string,
  ) {}

  get store(): string {
    return this.locksStore.name;
  }

  get isSubscribed(): boolean | undefined {
    const { wakeUps } = this.locksStore.mutex;
    if (!wakeUps || wakeUps.state === 'polling') return undefined;
    return wakeUps.isOpen || !this.queues.all.some(waitsAtStore);
  }

  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    return this.queues.runtime.events.on(event, listener);
  }

  held(): ObservedCall[] {
    const time = now();
    return watchdog.tenuresOf(this.queues.runtime).map(({ kind, turn }) => ({ kind, label: turn.label, age: time - turn.grantedAt }));
  }

  waiting(): ObservedCall[] {
    const calls: ObservedCall[] = [];
    for (const queue of this.queues.all) {
      for (const { isWaiting, settings, waited } of queue.waiting) {
        if (isWaiting) calls.push({ kind: settings.kind, label: settings.options.label, age: waited });
      }
    }
    return calls;
  }

  elections(): { name: string; leads: boolean }[] {
    const { candidates } = this.queues.runtime;
    return [...candidates].map((candidate) => ({
      name: candidate.key.slice(this.namespace.length).replace(ELECTION, ''),
      leads: candidate.isLeader(),
    }));
  }

  warn(message: string): void {
    this.queues.runtime.events.warn(message, { once: message });
  }
}
