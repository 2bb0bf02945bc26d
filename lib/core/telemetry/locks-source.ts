import type { Engine } from '../engine.js';
import { watchdog } from '../holding/watchdog.js';
import type { LockEvents, LockListener } from '../model/events.js';
import type { ObservedCall, TelemetrySource } from '../model/telemetry.js';
import { now } from '../util/clock.js';
import type { LockQueue } from '../waiting/lock-queue.js';

const ELECTION = /-leader$/;

/** Whether a caller waits for another process: the store has refused the key. A caller that waits for a holder of this process needs no messages. */
const waitsAtStore = ({ contenders, refusedLast }: LockQueue): boolean =>
  contenders.length > 0 && refusedLast?.refusal !== undefined && 'granted' in refusedLast.refusal.outcome;

/** Counts leases and waiters when it is asked: it keeps no list that could drift. */
export class LocksSource implements TelemetrySource {
  constructor(private readonly engine: Engine) {}

  get store(): string {
    return this.engine.store.name;
  }

  get isSubscribed(): boolean | undefined {
    const { wakeUps } = this.engine.store.mutex;
    if (!wakeUps || wakeUps.state === 'polling') return undefined;
    return wakeUps.isOpen || !this.engine.queues.all.some(waitsAtStore);
  }

  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    return this.engine.runtime.events.on(event, listener);
  }

  held(): ObservedCall[] {
    const time = now();
    return watchdog.tenuresOf(this.engine.runtime).map(({ kind, turn }) => ({ kind, label: turn.label, age: time - turn.grantedAt }));
  }

  waiting(): ObservedCall[] {
    const calls: ObservedCall[] = [];
    for (const queue of this.engine.queues.all) {
      for (const { isWaiting, settings, waited } of queue.waiting) {
        if (isWaiting && !settings.options.isStandby) calls.push({ kind: settings.kind, label: settings.options.label, age: waited });
      }
    }
    return calls;
  }

  elections(): { name: string; leads: boolean }[] {
    const { namespace, runtime } = this.engine;
    // The namespace is not part of the name of an election.
    return [...runtime.candidates].map((candidate) => ({
      name: candidate.key.slice(namespace.length).replace(ELECTION, ''),
      leads: candidate.isLeader(),
    }));
  }

  warn(message: string): void {
    this.engine.runtime.events.warn('NDL_TELEMETRY', message, { once: message });
  }
}
