import { checkOptions, integerFrom } from '../../core/model/check-options.js';
import { configError } from '../../core/model/errors.js';
import { currentOf, renewable, supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { StoreWarnings } from '../../core/store/store-warnings.js';
import { isSettledWithin } from '../../core/util/clock.js';
import { QuorumDriver } from './quorum.driver.js';
import { Member } from './quorum.member.js';

/** Options of {@link quorumStore}. */
export interface QuorumStoreOptions {
  /**
   * Milliseconds until a member that does not answer counts as silent: small next to every keyTimeout. From 1 to 2500. Default 200, or the shortest
   * `requestTimeout` of the members if that is less.
   */
  memberTimeout?: number;
  /**
   * Milliseconds for which a server that was started again does not vote, since it may have forgotten what it had granted. No `keyTimeout` and no
   * `minHold` may be longer, in any app. Default 60,000. `0` is your promise that all members keep each write through a crash.
   */
  quarantine?: number;
}

const DEFAULT_TIMEOUT = 200;
/** A quarter of the default keyTimeout. */
const LONGEST_TIMEOUT = 2500;
const DEFAULT_QUARANTINE = 60_000;
/** An acquire asks for the queue lock, and takes two trips to all members; meanwhile the queue member may have died. */
const TRIPS = 5;

/**
 * Mutexes and read/write locks that are held at a majority of independent servers: they survive the loss of any minority, also of the data on it.
 *
 * @param members three stores or more, each with a server of its own. They are closed with the store.
 * @throws {LockConfigError} when the members or an option are wrong.
 */
export function quorumStore(members: readonly LockStore[], options: QuorumStoreOptions = {}): LockStore {
  checkOptions(options, 'quorumStore', { memberTimeout: integerFrom(1, LONGEST_TIMEOUT), quarantine: integerFrom(0) });
  checkMembers(members);
  return renewable(() => storeOf(members.map(currentOf), options));
}

function storeOf(members: readonly LockStore[], options: QuorumStoreOptions): LockStore {
  const { on: onWarning, warn } = new StoreWarnings();
  const even = `${members.length} members survive the loss of as many as ${members.length - 1} do, and each lock needs one more answer`;
  if (members.length % 2 === 0) warn(`quorumStore: ${even}: use an odd number.`, 'NDL_QUORUM_EVEN');
  const shortest = Math.min(...members.map(({ requestTimeout }) => requestTimeout));
  const { memberTimeout = Math.min(DEFAULT_TIMEOUT, shortest), quarantine = DEFAULT_QUARANTINE } = options;
  const voters = members.map((store, index) => new Member(store, `member ${index + 1} (${store.name})`, quarantine, warn));
  const setting = {
    members: voters,
    memberTimeout,
    requestTimeout: Math.max(TRIPS * memberTimeout, ...members.map(({ requestTimeout }) => requestTimeout)),
    longestLease: voters.some(({ mayForget }) => mayForget) ? quarantine : Infinity,
  };
  const hasSides = members.every(({ readWriteLock }) => readWriteLock);
  return {
    name: 'quorum',
    requestTimeout: setting.requestTimeout,
    mutex: new QuorumDriver(setting, 'mutex'),
    readWriteLock: hasSides ? { read: new QuorumDriver(setting, 'read'), write: new QuorumDriver(setting, 'write') } : undefined,
    onWarning,
    degraded: () => voters.filter(({ isUp }) => !isUp).map(({ title }) => `the quorum has to do without ${title}`),
    supports(feature) {
      return supportedBy(this, feature);
    },
    async close() {
      await isSettledWithin(memberTimeout, Promise.all(voters.map((member) => member.close())));
      await Promise.all(members.map((store) => store.close()));
    },
  };
}

function checkMembers(members: readonly LockStore[]): void {
  const fail = (problem: string): never => {
    throw configError('OPTION', `quorumStore: ${problem}.`);
  };
  if (!Array.isArray(members)) fail('give a list of stores: quorumStore([a, b, c])');
  for (const [index, store] of members.entries()) {
    if (typeof (store as Partial<LockStore> | undefined)?.mutex?.acquire !== 'function') fail(`member ${index + 1} is not a store`);
    if (members.indexOf(store) < index)
      fail(`member ${index + 1} is member ${members.indexOf(store) + 1} again: each needs a server of its own`);
  }
  if (members.length < 3) fail(`it needs three members or more, not ${members.length}: the majority of fewer is all of them`);
}
