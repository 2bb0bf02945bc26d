import { onAbort } from '../../core/util/abort.js';
import { configError, LockAbortedError } from '../../core/model/errors.js';
import { checkOptions, integerFrom, ofType, only } from '../../core/model/check-options.js';
import { ACQUIRE_CHECKS } from '../../core/model/options.js';
import { detached } from '../../core/util/detached.js';
import type { Locks } from '../../locks.js';
import type { LeaderElection, LeaderElectionOptions, Term } from '../../primitives/leader-election.js';
import { StandbyApp, type StandbyContainer } from './standby-app.js';

/** Options of {@link runStandby}. */
export interface StandbyOptions<App extends StandbyContainer = StandbyContainer> extends LeaderElectionOptions {
  /** Not the `Locks` of the app itself: those are closed together with each container. */
  locks: Locks;
  /** The name of the election, see {@link Locks.leaderElection}. */
  name: string;
  /**
   * Creates a container without initializing it: `() => NestFactory.create(AppModule, { abortOnError: false })`. Constructors and async
   * providers run, lifecycle hooks do not. Called again after each term, because a closed app cannot start again.
   */
  create: () => Promise<App>;
  /** Prepares the container before an election, for instance connections that otherwise open on first use. */
  prepare?: (app: App) => unknown;
  /** Starts the app: `(app) => app.listen(3000)`, or `app.init()` if it does not listen. This also starts its crons and consumers. */
  start: (app: App, term: Term) => unknown;
  /** Stops the standby when it aborts, as {@link Standby.stop} does. */
  signal?: AbortSignal;
  /**
   * Milliseconds that an app has to close. Then its open connections are cut; if it has not closed after the same time again (at least one
   * second), the standby fails. Default 10,000. The `shutdownTimeout` of the app's own locks is part of this time.
   */
  shutdownTimeout?: number;
}

/** An app that runs in one process of several. */
export interface Standby {
  /** Whether this process is the leader. Synchronous, and never true for an expired lease. The app may still be starting. */
  isLeader(): boolean;
  /**
   * Resolves when the standby was stopped and its app has closed. Rejects if it cannot continue, after the term was released. The error is that of
   * `create`, `prepare`, `start` or the app's `close`; an `Error` if the app does not close in time; a {@link StoreError} that no retry can help; or a
   * {@link LockAbortedError} if its `locks` were closed. The process should end then.
   */
  readonly done: Promise<void>;
  /** Closes the app, hands over the leadership, and stops campaigning. Returns {@link done}. A request of the app must not await it. */
  stop(): Promise<void>;
}

const CHECKS = {
  ...only(ACQUIRE_CHECKS, 'signal', 'keyTimeout', 'retryInterval', 'maxHold'),
  locks: (value: unknown) =>
    typeof (Object(value) as Locks).leaderElection === 'function' ? undefined : 'a Locks, and not that of the app',
  name: ofType('string'),
  create: ofType('function'),
  prepare: ofType('function'),
  start: ofType('function'),
  shutdownTimeout: integerFrom(0),
};

/**
 * Runs a Nest app in the leader of several processes, and keeps it ready to start in the others: each process builds its container and opens its
 * connections before it campaigns.
 *
 * When its term is revoked, it stops listening at once, closes the app, builds the next container, and campaigns again.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function runStandby<App extends StandbyContainer>(options: StandbyOptions<App>): Standby {
  for (const required of ['locks', 'create', 'start']) checkOptions(options, 'runStandby', CHECKS, required);
  const { locks, name, signal, keyTimeout, retryInterval, maxHold } = options;
  const election = locks.leaderElection(name, { keyTimeout, retryInterval, maxHold });
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const forget = signal && onAbort(signal, end);
  if (signal?.aborted) end();
  const done = detached(() => serve(options, election, stop.signal)).finally(forget);
  return {
    done,
    isLeader: () => election.isLeader(),
    stop: () => {
      end();
      return done;
    },
  };
}

async function serve<App extends StandbyContainer>(
  options: StandbyOptions<App>,
  election: LeaderElection,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const failures = new Set<unknown>();
    const fail = (error: unknown): void => void failures.add(error);
    await standBy(options, election, stop, fail);
    const [first, ...others] = failures;
    for (const error of others) options.locks.log.warn('NDL_STANDBY_END', `It has failed once more while it ended: ${String(error)}`);
    if (failures.size > 0) throw first;
  }
}

/** The life of one container, with at most one term. */
async function standBy<App extends StandbyContainer>(
  { create, prepare, start, shutdownTimeout = 10_000, locks }: StandbyOptions<App>,
  election: LeaderElection,
  stop: AbortSignal,
  fail: (error: unknown) => void,
): Promise<void> {
  const app = await create();
  const container = new StandbyApp(app, shutdownTimeout, locks.log);
  const lead = async (term: Term): Promise<void> => {
    await container.lead(term, start).catch(fail);
    await container.close().catch(fail);
    const reason: unknown = term.signal.reason;
    if (reason instanceof LockAbortedError && reason.reason === 'shutdown') fail(reason);
    // A container serves one term only.
    await election.resign();
  };
  try {
    assertIdle(app);
    if (!stop.aborted) await prepare?.(app);
    if (!stop.aborted) await election.run(lead, { signal: stop });
  } catch (error) {
    if (!stop.aborted || !(error instanceof LockAbortedError)) fail(error);
  }
  await container.close().catch(fail);
}

/** @throws {LockConfigError} if its crons and consumers run already. */
function assertIdle(app: StandbyContainer): void {
  if (!(app as StandbyContainer & { isInitialized?: unknown }).isInitialized) return;
  throw configError(
    'CALL',
    'runStandby: what "create" made has begun already, before any election. Give NestFactory.create(), which does not call app.init() as ' +
      'NestFactory.createApplicationContext() does, and init it in "start".',
  );
}
