import { refusalIn, StoreError, type LockError } from '../model/errors.js';
import type { LockLog } from '../model/lock-log.js';
import { dateOf, now } from '../util/clock.js';
import { duration } from '../util/duration.js';
import type { LockStore } from './lock-store.js';
import { checkStore } from './store-check.js';

/** Writes to the log what the store is, when it goes away or refuses, and when it is back. */
export class StoreWatch {
  /** What the store refused last, until it grants a lock. */
  refusal: StoreError | undefined;
  private forget: readonly ((() => void) | undefined)[] = [];
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
    this.title = store.watchState ? name.charAt(0).toUpperCase() + name.slice(1) : `The ${name} store`;
  }

  begin(): void {
    const { store, log } = this;
    this.forget = [
      store.watchState?.((reason, away, remedy) => (reason === undefined ? this.isBack() : this.isAway(reason, away, remedy))),
      store.onWarning?.((message) => log.write('warn', message)),
    ];
  }

  stop(): void {
    this.isStopped = true;
    for (const forget of this.forget) forget?.();
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
      const checks = (await this.store.doctor?.checks(this.namespace)) ?? [];
      const version = checks.find(({ id }) => id === 'version');
      const bad = checks.filter((check) => check.state === 'bad' || (check === version && check.state === 'warn'));
      const refusal = bad.find(({ id, limits }) => id === 'role' && limits);
      if (refusal) throw new StoreError(refusal.advice, { transient: true, isRefusal: true });
      if (this.isStopped) return;
      const server = version?.state === 'unknown' ? this.title : (version?.seen ?? this.title);
      const waits = this.store.supports('wakeUps') ? 'are woken' : 'poll';
      this.log.write('log', `${prefix}${server} answers in ${duration(took)}; waiters ${waits}`);
      for (const { name, seen, advice } of bad) this.log.write('warn', `${prefix}${name}: ${seen}. ${advice}`);
    } catch (error) {
      if (!this.isStopped && !this.failed(error as LockError, prefix)) this.unreached(prefix, error as LockError, now() - start);
      throw error;
    } finally {
      this.isChecking = false;
    }
  }

  /** To be called for each request that failed: a server that refuses is there, so nothing else shows it. False: it was no refusal. */
  failed(error: LockError, prefix = ''): boolean {
    const refusal = refusalIn(error);
    if (!refusal) return false;
    this.refusal = refusal;
    const reason = (): string => refusal.message.replace(/^\w+: /, '').replace(/[.:]?(\n[^]*)?$/, '');
    this.log.write('warn', () => `${prefix}${this.title} refuses requests: ${reason()}`, { key: error.key, once: 'refusal' });
    return true;
  }

  /** To be called for each lock that the store has granted. */
  granted(): void {
    const { refusal } = this;
    this.refusal = undefined;
    // What is final is about one key or right: it says nothing of the others that it was granted.
    if (refusal?.transient) this.log.write('warn', `${this.title} grants locks again`, { once: 'granted' });
  }

  private unreached(prefix: string, error: LockError, took: number): void {
    this.said = `cannot be reached: ${textOf(error)}${error.transient ? '; locks wait until it answers' : ''}`;
    if (error.transient) this.awaySince ??= now() - took;
    this.log.write('warn', `${prefix}${this.title} ${this.said}`);
  }

  private isAway(reason: string, away: number, remedy: string | undefined): void {
    if (remedy !== undefined) this.log.write('error', `${this.title} does not answer any more: ${remedy}`);
    if (this.awaySince !== undefined) return;
    this.awaySince = now() - away;
    if (remedy !== undefined || this.isChecking || `${this.said} ${this.refusal?.message}`.includes(reason)) return;
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
