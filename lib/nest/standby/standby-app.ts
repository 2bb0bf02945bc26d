import type { Server } from 'node:http';
import type { LockLog } from '../../core/model/lock-log.js';
import { onAbort } from '../../core/util/abort.js';
import { isSettledWithin } from '../../core/util/clock.js';
import type { Term } from '../../primitives/leader-election.js';

/** Minimum time in milliseconds that a closing app has left after its connections were cut. */
const GRACE = 1_000;

/** The app that a standby runs, as each Nest app is one. */
export interface StandbyContainer {
  /** Starts its modules. */
  init(): Promise<unknown>;
  /** Ends what it has started. */
  close(): Promise<unknown>;
}

/** One container of a standby. It starts at most once, and closes once. */
export class StandbyApp<App extends StandbyContainer> {
  private starting: Promise<unknown> = Promise.resolve();
  private closing: Promise<void> | undefined;

  constructor(
    private readonly app: App,
    private readonly shutdownTimeout: number,
    private readonly log: LockLog,
  ) {}

  /** Resolves when the term is over. Rejects if the start failed before that. */
  async lead(term: Term, start: (app: App, term: Term) => unknown): Promise<void> {
    const over = new Promise<void>((resolve) => onAbort(term.signal, resolve));
    onAbort(term.signal, () => this.stopListening());
    const starting = (async () => start(this.app, term))();
    this.starting = starting.catch((error: unknown) => {
      const { signal } = term;
      if (signal.aborted && error !== signal.reason)
        this.log.warn('NDL_STANDBY_START', `The start failed when its term was over already: ${String(error)}`);
    });
    await Promise.race([starting.then(() => over), over]);
  }

  /**
   * Runs Nest's own shutdown: hooks, listener, requests in flight. Waits for a start that is in progress first, because Nest cannot close an app
   * that is still starting.
   *
   * @throws what Nest throws, and an `Error` when it takes too long.
   */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    const { shutdownTimeout } = this;
    const closed = this.starting.then(async () => {
      this.stopListening();
      await this.app.close();
    });
    if (await isSettledWithin(shutdownTimeout, closed)) return closed;
    this.server?.closeAllConnections?.();
    if (await isSettledWithin(Math.max(shutdownTimeout, GRACE), closed)) return closed;
    closed.catch((error: unknown) =>
      this.log.warn('NDL_STANDBY_END', `The app that did not close in time failed to close: ${String(error)}`),
    );
    throw new Error(
      `The app has not closed, though its connections were cut after a shutdownTimeout of ${shutdownTimeout} ms: end the process, as it may still be at work.`,
    );
  }

  /** Stops listening at once. Nest alone would close the listener only after its first shutdown hooks. */
  private stopListening(): void {
    const { server } = this;
    // A start in progress may be about to listen, and go on after that. Nest reports a server without an address as failed, so close it one turn later.
    if (!server?.listening) return void server?.once('listening', () => setImmediate(() => this.stopListening()));
    // An idle keep-alive connection would stay open for seconds, bring more requests, and delay the shutdown.
    Object.assign(server, { keepAliveTimeout: 1, keepAliveTimeoutBuffer: 0 });
    server.close();
  }

  private get server(): Server | undefined {
    // Only apps that can serve HTTP have one.
    return (this.app as StandbyContainer & { getHttpServer?(): Server | undefined }).getHttpServer?.();
  }
}
