import type { DoctorCheck } from '../model/doctor-report.js';
import { LockConfigError, type LockError, messageOf, refusalIn, StoreError } from '../model/errors.js';
import type { LockLog, WarningCode } from '../model/lock-log.js';
import { dateOf, duration, idle, now } from '../util/clock.js';
import { detached } from '../util/detached.js';
import type { LockStore } from './lock-store.js';
import { checkStore } from './store-check.js';

/** Milliseconds between two questions to a store that does not answer. */
const PAUSE = 500;

/** Checks that are logged at startup also where they only warn. */
const LOGGED: Readonly<Record<string, WarningCode>> = { version: 'NDL_SERVER_VERSION', scope: 'NDL_ONE_PROCESS' };

/**
 * Writes to the log what the store is, when it goes away or refuses, and when it is back. It learns that from what becomes of requests: only after one
 * that had no answer the store is asked, until it answers.
 */
export class StoreWatch {
  /** The last refusal of the store, until it grants a lock. */
  refusal: StoreError | undefined;
  private forget: readonly ((() => void) | undefined)[] = [];
  private readonly title: string;
  /** Since when there is no answer. */
  private awaySince: number | undefined;
  /** Whether the log says so. */
  private isSaid = false;
  private isChecking = false;
  private isStopped = false;

  constructor(
    private readonly store: LockStore,
    private readonly namespace: string,
    private readonly log: Pick<LockLog, 'warn' | 'write'>,
    name = store.name,
    private readonly outlook = 'locks wait',
  ) {
    this.title = name.charAt(0).toUpperCase() + name.slice(1);
  }

  begin(): void {
    const { store, log } = this;
    this.forget = [
      store.onTrouble?.(() => this.trouble()),
      store.onWarning?.((message, code = 'NDL_STORE_OTHER') => log.warn(code, message)),
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
    const refusedBefore = this.refusal;
    this.isChecking = true;
    try {
      const took = await checkStore(this.store, this.namespace, this.store.requestTimeout);
      this.isBack();
      const checks = (await this.store.doctor?.checks(this.namespace)) ?? [];
      const [version, location] = ['version', 'location'].map((id) => checks.find((check) => check.id === id));
      const bad = checks.filter(({ id, state }) => state === 'bad' || (state === 'warn' && id in LOGGED));
      const refusal = bad.find(({ id, limits }) => id === 'role' && limits);
      if (refusal) throw new StoreError(refusal.advice, { transient: true, isRefusal: true });
      // A request was refused meanwhile: this server was the master until then. A final refusal is about one key or right.
      if (this.refusal !== refusedBefore && this.refusal?.transient) throw this.refusal;
      if (this.isStopped) return;
      const server = version?.state === 'unknown' ? this.title : (version?.seen ?? this.title);
      const waits = this.store.supports('wakeUps') ? 'are woken' : 'poll';
      this.log.write('log', `${prefix}${server}${this.locationOf(location)} answers in ${duration(took)}; waiters ${waits}`);
      for (const { id, name, seen, advice } of bad)
        this.log.warn(LOGGED[id] ?? 'NDL_SERVER_SETTING', `${prefix}${name}: ${seen}. ${advice}`);
    } catch (error) {
      if (!this.isStopped && !this.refused(error as LockError, prefix)) this.unreached(prefix, error as LockError, start);
      throw error;
    } finally {
      this.isChecking = false;
    }
  }

  /** In all that must be the same for two processes to see each other's locks. */
  private locationOf(check: DoctorCheck | undefined): string {
    const { namespace } = this;
    const parts = [check?.state === 'ok' ? check.seen : '', namespace && `namespace ${JSON.stringify(namespace)}`].filter(Boolean);
    const text = parts.join(', ');
    return text && ` ${text}${text.includes(', ') ? ',' : ''}`;
  }

  /** To be called for each request that failed. @param sentAt when it was sent. */
  failed(error: LockError, sentAt = now()): void {
    if (!this.refused(error) && error.transient && !this.isChecking) this.suspect(sentAt);
  }

  /** To be called for each lock that the store has granted. */
  granted(): void {
    const { refusal } = this;
    this.refusal = undefined;
    // A final error concerns one key or right, not the store.
    if (refusal?.transient) this.log.warn('NDL_STORE_BACK', `${this.title} grants locks again`, { once: 'granted' });
  }

  /** A server that refuses is there, so nothing else shows it. False: it was no refusal. */
  private refused(error: LockError, prefix = ''): boolean {
    const refusal = refusalIn(error);
    if (!refusal) return false;
    this.refusal = refusal;
    const reason = (): string => messageOf(refusal).replace(/^\w+: |[.:]?(\n[^]*)?$/g, '');
    this.log.warn('NDL_STORE_REFUSES', () => `${prefix}${this.title} refuses requests: ${reason()}`, { key: error.key, once: 'refusal' });
    return true;
  }

  private unreached(prefix: string, error: LockError, since: number): void {
    const { transient, cause } = error;
    const text = messageOf(error).replace(/\.$/, '');
    const reason = cause === undefined || text.includes(messageOf(cause)) ? text : `${text} (${messageOf(cause)})`;
    const outlook = transient ? '; locks wait until it answers' : '';
    if (error instanceof LockConfigError) this.log.warn('NDL_STORE_REFUSES', `${prefix}${this.title} gives no locks: ${reason}`);
    else this.log.warn('NDL_STORE_AWAY', `${prefix}${this.title} cannot be reached: ${reason}${outlook}`);
    if (!transient) return;
    this.isSaid = true;
    this.suspect(since);
  }

  /** The store may have gone away. */
  trouble(): void {
    if (!this.isChecking) this.suspect();
  }

  /** @param since when the request was sent that had no answer. */
  suspect(since = now()): void {
    if (this.awaySince !== undefined || this.isStopped) return;
    this.awaySince = since;
    void detached(() => this.follow(since));
  }

  /**
   * Asks until there is an answer. What is over within a `requestTimeout` from now is no outage: servers close idle connections, and one that is silent
   * is replaced.
   */
  private async follow(since: number): Promise<void> {
    const { store, namespace, title, log } = this;
    const start = now();
    const isOver = (): boolean => this.isStopped || this.awaySince !== since;
    while (!isOver()) {
      const error = await checkStore(store, namespace, store.requestTimeout).then(
        () => undefined,
        (cause: LockError) => cause,
      );
      if (isOver()) return;
      // A refusal is an answer, too. A store that is closed gives none.
      const isRefusal = error instanceof StoreError && error.isRefusal;
      if (!error?.transient || isRefusal) {
        const isClosed = error instanceof StoreError && error.isUnsent && !isRefusal;
        if (this.isSaid && isRefusal && error.transient) this.refused(error);
        else if (this.isSaid && !isClosed) log.warn('NDL_STORE_BACK', `${title} answers again after ${duration(now() - since)}`);
        return this.isBack();
      }
      if (!this.isSaid && now() - start >= store.requestTimeout) {
        this.isSaid = true;
        const reason = messageOf(error.cause ?? error).replace(/\.$/, '');
        const line = `${title} does not answer since ${new Date(dateOf(since)).toISOString()}: ${reason}; ${this.outlook}`;
        log.warn('NDL_STORE_AWAY', line, { key: error.key });
      }
      await idle(PAUSE);
    }
  }

  private isBack(): void {
    this.awaySince = undefined;
    this.isSaid = false;
  }
}
