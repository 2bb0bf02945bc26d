import type { LockError } from '../model/errors.js';
import type { LockLog } from '../model/lock-log.js';
import { dateOf, now } from '../util/clock.js';
import { duration } from '../util/duration.js';
import type { LockStore } from './lock-store.js';
import { checkStore } from './store-check.js';

/** Writes to the log what the store is, when it goes away and when it is back. */
export class StoreWatch {
  private readonly forget: (() => void) | undefined;
  private readonly title: string;
  private awaySince: number | undefined;
  /** The outage that the check has named. */
  private said = '';
  private isChecking = false;
  private isStopped = false;

  constructor(
    private readonly store: LockStore,
    private readonly namespace: string,
    private readonly log: LockLog,
  ) {
    const { name } = store;
    this.title = store.describe ? name.charAt(0).toUpperCase() + name.slice(1) : `The ${name} store`;
    this.forget = store.watchState?.((reason, away) => (reason === undefined ? this.isBack() : this.isAway(reason, away)));
  }

  stop(): void {
    this.isStopped = true;
    this.forget?.();
  }

  /**
   * Asks the store once, and writes one line.
   *
   * @param name of the store, if there are several.
   * @throws {StoreError} with what the line says, if it does not answer or refuses.
   */
  async check(name: string | undefined): Promise<void> {
    const prefix = name === undefined ? '' : `Store "${name}": `;
    const start = now();
    this.isChecking = true;
    try {
      const took = await checkStore(this.store, this.namespace, this.store.requestTimeout);
      this.awaySince = undefined;
      const { server = this.title, wakesWaiters = true, advice = [] } = (await this.store.describe?.()) ?? {};
      if (this.isStopped) return;
      this.log.write('log', `${prefix}${server} answers in ${duration(took)}; waiters ${wakesWaiters ? 'are woken' : 'poll'}`);
      for (const each of advice) this.log.write('warn', prefix + each);
    } catch (error) {
      if (!this.isStopped) this.refused(prefix, error as LockError, now() - start);
      throw error;
    } finally {
      this.isChecking = false;
    }
  }

  private refused(prefix: string, error: LockError, took: number): void {
    this.said = error.transient
      ? `cannot be reached: ${textOf(error)}; locks wait until it answers`
      : `refuses this app: ${textOf(error)}. Check the address, the user, the password and the ACL rules`;
    // A server that refuses a command is not away.
    if (error.transient) this.awaySince ??= now() - took;
    this.log.write('warn', `${prefix}${this.title} ${this.said}`);
  }

  private isAway(reason: string, away: number): void {
    if (this.awaySince !== undefined) return;
    this.awaySince = now() - away;
    if (this.isChecking || this.said.includes(reason)) return;
    this.log.write('warn', `${this.title} does not answer since ${new Date(dateOf(now() - away)).toISOString()}: ${reason}; locks wait`);
  }

  private isBack(): void {
    if (this.awaySince === undefined || this.isChecking) return;
    const away = now() - this.awaySince;
    this.awaySince = undefined;
    this.said = '';
    this.log.write('warn', `${this.title} answers again after ${duration(away)}`);
  }
}

/** The cause says more than "not connected in time". */
function textOf({ message, cause }: LockError): string {
  const { message: reason } = Object(cause) as Partial<Error>;
  const text = message.replace(/\.$/, '');
  return reason === undefined || text.includes(reason) ? text : `${text} (${reason})`;
}
