import { now } from '../core/util/clock.js';
import type { Locks } from '../locks.js';

const AGAIN = 600_000;

/** The advice of the doctor about a store. It takes a lock of its own, so it is not asked often. */
export class DoctorAdvice {
  texts: readonly string[] = [];
  private dueAt = 0;

  async refresh(name: string, locks: Locks): Promise<void> {
    if (now() < this.dueAt) return;
    this.dueAt = now() + AGAIN;
    try {
      const { checks } = await locks.doctor();
      const unfit = checks.filter(({ state, limits }) => state === 'bad' || limits?.purpose === 'correctness');
      this.texts = unfit.map((check) => `${name}: ${[check.name, check.seen, check.advice].filter(Boolean).join(': ')}`);
    } catch {
      this.dueAt = 0;
    }
  }
}
