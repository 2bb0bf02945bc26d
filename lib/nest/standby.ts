import { type INestApplicationContext, Logger } from '@nestjs/common';
import { inspect } from 'node:util';
import { onAbort } from '../core/abort.js';
import { LockAbortedError, LockConfigError } from '../core/errors.js';
import { checkOptions } from '../core/options.js';
import { outside } from '../core/outside.js';
import type { Locks } from '../locks.js';
import type { LeaderElection, LeaderElectionOptions, Term } from '../primitives/leader-election.js';
import { StandbyApp } from './standby-app.js';

export interface StandbyOptions<App extends INestApplicationContext = INestApplicationContext> extends LeaderElectionOptions {
  /** Not those of the app itself, which end with each of its containers. */
  locks: Locks;
  /** Of the election: see {@link Locks.leaderElection}. */
  name: string;
  /**
   * Makes a container that has not begun anything: `() => NestFactory.create(AppModule, { abortOnError: false })`. Constructors and async
   * providers run, lifecycle hooks do not. It is called again after each term, as an app that has closed cannot start again.
   */
  create: () => Promise<App>;
  /** Warms up what can be ahead of an election, such as connections that open on first use. */
  prepare?: (app: App) => unknown;
  /** Begins to serve: `(app) => app.listen(3000)`, or `app.init()` where nothing listens. Crons, consumers and listeners start in there. */
  start: (app: App, term: Term) => unknown;
  /** Ends it, as {@link Standby.stop} does. */
  signal?: AbortSignal;
  /**
   * Milliseconds for the orderly end of an app: then its open connections are cut, and if it has not closed after as long again (a second at
   * least), the standby fails. Default 10,000. That of the app's own locks counts within it.
   */
  shutdownTimeout?: number;
}

/** An app that runs in one process of several. */
export interface Standby {
  /** Whether the present term is ours: synchronous, and never true of a lease that has run out. The app may still be starting. */
  isLeader(): boolean;
  /**
   * Resolves when it has been stopped and its app has closed. Rejects when it could not go on, once the term is given back: with what `create`,
   * `prepare`, `start` or the app's `close` threw, with an `Error` when the app does not close in time, with {@link StoreError} where
   * no retry helps, with {@link LockAbortedError} when the locks were closed under it. The process should end then.
   */
  readonly done: Promise<void>;
  /** Closes the app, hands over the leadership at once, and stands no more. Returns {@link done}, for which no request may wait. */
  stop(): Promise<void>;
}

const OPTIONS = ['locks', 'name', 'create', 'prepare', 'start', 'signal', 'shutdownTimeout', 'keyTimeout', 'retryInterval', 'maxHold'];

/**
 * Runs a Nest app in the leader of several processes, and keeps it ready to start in the others: each has built its container and opened its
 * connections before it stands for election.
 *
 * When its term is revoked, it stops listening at once, closes the app, builds the next container, and stands again.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function runStandby<App extends INestApplicationContext>(options: StandbyOptions<App>): Standby {
  checkStandbyOptions(options);
  const { locks, name, signal, keyTimeout, retryInterval, maxHold } = options;
  const election = locks.leaderElection(name, { keyTimeout, retryInterval, maxHold });
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const forget = signal && onAbort(signal, end);
  if (signal?.aborted) end();
  const done = outside(() => serve(options, election, stop.signal)).finally(forget);
  return {
    done,
    isLeader: () => election.isLeader(),
    stop: () => {
      end();
      return done;
    },
  };
}

async function serve<App extends INestApplicationContext>(
  options: StandbyOptions<App>,
  election: LeaderElection,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const failures = new Set<unknown>();
    const fail = (error: unknown): void => void failures.add(error);
    await standBy(options, election, stop, fail);
    const [first, ...others] = failures;
    for (const error of others) new Logger('Standby').error(`It has failed once more while it ended: ${String(error)}`);
    if (failures.size > 0) throw first;
  }
}

/** One container's life, with one term at most. */
async function standBy<App extends INestApplicationContext>(
  { create, prepare, start, shutdownTimeout = 10_000 }: StandbyOptions<App>,
  election: LeaderElection,
  stop: AbortSignal,
  fail: (error: unknown) => void,
): Promise<void> {
  const app = await create();
  const container = new StandbyApp(app, shutdownTimeout);
  const lead = async (term: Term): Promise<void> => {
    await container.lead(term, start).catch(fail);
    await container.close().catch(fail);
    const reason: unknown = term.signal.reason;
    if (reason instanceof LockAbortedError && reason.reason === 'shutdown') fail(reason);
    // The next term is for the next container.
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
function assertIdle(app: INestApplicationContext): void {
  if (!(app as { isInitialized?: unknown }).isInitialized) return;
  throw new LockConfigError(
    'runStandby: what "create" made has begun already, before any election. Give NestFactory.create(), which does not call app.init() as ' +
      'NestFactory.createApplicationContext() does, and init it in "start".',
  );
}

function checkStandbyOptions<App extends INestApplicationContext>(options: StandbyOptions<App>): void {
  if (options === undefined) throw new LockConfigError('runStandby: the options must be an object.');
  checkOptions(options, 'runStandby', OPTIONS);
  const { locks, create, prepare, start, shutdownTimeout = 0 } = options;
  if (typeof locks?.leaderElection !== 'function')
    throw new LockConfigError('runStandby: "locks" must be a Locks, and not that of the app.');
  for (const [name, value] of Object.entries({ create, start, prepare: prepare ?? start })) {
    if (typeof value !== 'function') throw new LockConfigError(`runStandby: "${name}" must be a function, not ${inspect(value)}.`);
  }
  if (!Number.isSafeInteger(shutdownTimeout) || shutdownTimeout < 0) {
    throw new LockConfigError(`runStandby: "shutdownTimeout" must be a whole number of at least 0, not ${inspect(shutdownTimeout)}.`);
  }
}
