import { LockTimeoutError } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';
import { GuardedChild } from './child.js';
import type { Command, Session } from './command.js';
import { EXIT, usage } from './failure.js';
import { age } from './output.js';

/** The signals that the command gets. */
const PASSED_ON = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
/** The largest part of a lease that the command may take to end. A lease that was just renewed as late as it is has two thirds left. */
const MOST_GRACE = 1 / 2;
const KEY_TIMEOUT = 30_000;
const GRACE = 10_000;
/** Milliseconds between the SIGKILL and the end of the lease: a process is not gone at once. */
const LONGEST_SPARE = 400;

export const run: Command = {
  words: ['<key>', '-- <command>'],
  summary: 'runs a command under the lock: ndl run db-migrate --wait 10m -- npm run migrate',
  flags: {
    wait: { type: 'string', help: 'how long to wait for the lock; 0: one try (no limit)' },
    'key-timeout': { type: 'string', help: 'length of the lease, which is renewed (30s)' },
    'min-hold': { type: 'string', help: 'how long the key stays taken at least' },
    'max-hold': { type: 'string', help: 'after so long the command is ended' },
    'conflict-exit-code': { type: 'string', help: 'if the lock was not to be had (75)' },
    grace: { type: 'string', help: 'between SIGTERM and SIGKILL, when the lease is lost (10s, at most half of --key-timeout)' },
  },
  async run(session) {
    const { flags, words, rest, out, locks } = session;
    if (process.platform === 'win32') throw usage('This command needs process groups, which Windows does not have.');
    if (rest.length === 0) throw usage('Give the command after --: ndl run <key> -- <command> [arguments].');
    const [key = ''] = words;
    const keyTimeout = flags.duration('key-timeout') ?? KEY_TIMEOUT;
    const grace = flags.duration('grace') ?? Math.min(GRACE, keyTimeout * MOST_GRACE);
    if (grace > keyTimeout * MOST_GRACE) {
      throw usage(
        `--grace ${age(grace)} is too long for --key-timeout ${age(keyTimeout)}, of which it may be half: the command must have ended before the lease does.`,
      );
    }
    const [minHold, maxHold] = [flags.duration('min-hold'), flags.duration('max-hold')];
    const conflict = flags.integer('conflict-exit-code') ?? EXIT.conflict;
    if (conflict > 255) throw usage('--conflict-exit-code is at most 255.');
    const options = {
      keyTimeout,
      waitTimeout: flags.duration('wait') ?? Infinity,
      label: `ndl run ${rest[0]}`,
      minHold,
      // 0: none.
      maxHold: maxHold || undefined,
    };
    try {
      const opened = await locks();
      await using lease = await opened.acquire(key, { ...options, signal: session.signal });
      return await under(lease, rest, grace, session);
    } catch (error) {
      if (!(error instanceof LockTimeoutError)) throw error;
      out.note(error.message);
      return conflict;
    }
  },
};

async function under(lease: Lease, command: readonly string[], grace: number, { out, signal: interrupted }: Session): Promise<number> {
  const spare = Math.min(lease.remaining() / 20, LONGEST_SPARE);
  const { key, owner, fencingToken, signal } = lease;
  interrupted.throwIfAborted();
  let child: GuardedChild | undefined;
  const early: NodeJS.Signals[] = [];
  const passOn = (name: NodeJS.Signals): void => (child ? child.signal(name) : void early.push(name));
  // Stopped by Ctrl-Z, nobody would renew the lease, and the command would go on.
  const ignore = (): void => undefined;
  for (const name of PASSED_ON) process.on(name, passOn);
  process.on('SIGTSTP', ignore);
  let isLost = false;
  let timer: NodeJS.Timeout | undefined;
  const lose = (reason: string): void => {
    if (isLost) return;
    isLost = true;
    out.note(`The command is ended: ${reason}`);
    child?.end();
  };
  const onAbort = (): void => lose((signal.reason as Error).message);
  /** A lease that could not be renewed for long: the command must have ended when the lease does. */
  const lookAtEnd = (): void => {
    const left = lease.remaining() - grace - spare;
    if (left <= 0) lose(`The lease of "${key}" could not be renewed, and ends in ${age(lease.remaining())}.`);
    else timer = setTimeout(lookAtEnd, left);
  };
  try {
    const env = { ...process.env, LOCK_KEY: key, LOCK_OWNER: owner, LOCK_FENCING_TOKEN: String(fencingToken ?? '') };
    child = await GuardedChild.start(command, env, grace);
    for (const name of early) child.signal(name);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
    lookAtEnd();
    const code = await child.exited;
    return isLost ? EXIT.lost : code;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    for (const name of PASSED_ON) process.off(name, passOn);
    process.off('SIGTSTP', ignore);
  }
}
