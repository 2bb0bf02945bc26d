import { LockAbortedError, LockTimeoutError } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';
import { GuardedChild } from './child.js';
import type { Command, Session } from './command.js';
import { EXIT, usage } from './failure.js';
import { age } from './output.js';

/** Passed on to the command. */
const PASSED_ON = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
/** Of a lease that was just renewed as late as it is. */
const LEFT_AFTER_A_RENEWAL = 2 / 3;
const KEY_TIMEOUT = 30_000;
const GRACE = 10_000;

export const run: Command = {
  words: ['<key>'],
  summary: 'runs a command under the lock: ndl run db-migrate --wait 10m -- npm run migrate',
  flags: {
    wait: { type: 'string', help: 'how long to wait for the lock; 0: one try (no limit)' },
    'key-timeout': { type: 'string', help: 'length of the lease, which is renewed (30s)' },
    'min-hold': { type: 'string', help: 'how long the key stays taken at least' },
    'max-hold': { type: 'string', help: 'after so long the command is ended' },
    'conflict-exit-code': { type: 'string', help: 'if the lock was not to be had (75)' },
    grace: { type: 'string', help: 'between SIGTERM and SIGKILL, when the lease is lost (10s)' },
  },
  async run(session) {
    const { flags, words, rest, out, locks } = session;
    if (rest.length === 0) throw usage('Give the command after --: ndl run <key> -- <command> [arguments].');
    const [key = ''] = words;
    const [keyTimeout, grace] = [flags.duration('key-timeout') ?? KEY_TIMEOUT, flags.duration('grace') ?? GRACE];
    if (grace >= keyTimeout * LEFT_AFTER_A_RENEWAL) {
      throw usage(
        `--grace ${age(grace)} is too long for --key-timeout ${age(keyTimeout)}: the command must have ended before the lease does. Keep it under two thirds.`,
      );
    }
    const [minHold, maxHold] = [flags.duration('min-hold'), flags.duration('max-hold')];
    const conflict = flags.integer('conflict-exit-code') ?? EXIT.conflict;
    const options = {
      keyTimeout,
      waitTimeout: flags.duration('wait') ?? Infinity,
      label: `ndl run ${rest[0]}`,
      ...(minHold && { minHold }),
      ...(maxHold && { maxHold }),
    };
    try {
      await using lease = await (await locks()).acquire(key, { ...options, signal: session.signal });
      return await under(lease, rest, grace, session);
    } catch (error) {
      if (error instanceof LockAbortedError) return 130;
      if (!(error instanceof LockTimeoutError)) throw error;
      out.note(error.message);
      return conflict;
    }
  },
};

async function under(lease: Lease, command: readonly string[], grace: number, { out }: Session): Promise<number> {
  const { key, owner, fencingToken, signal } = lease;
  const env = { ...process.env, LOCK_KEY: key, LOCK_OWNER: owner, LOCK_FENCING_TOKEN: String(fencingToken ?? '') };
  const child = await GuardedChild.start(command, env, grace);
  let isLost = false;
  let timer: NodeJS.Timeout | undefined;
  const lose = (): void => {
    isLost = true;
    out.note(`The lock "${key}" is lost: ${(signal.reason as Error).message}. The command is ended.`);
    child.signal('SIGTERM');
    timer = setTimeout(() => child.signal('SIGKILL'), grace);
  };
  const passOn = (name: NodeJS.Signals): void => child.signal(name);
  for (const name of PASSED_ON) process.on(name, passOn);
  if (signal.aborted) lose();
  else signal.addEventListener('abort', lose);
  const code = await child.exited;
  clearTimeout(timer);
  signal.removeEventListener('abort', lose);
  for (const name of PASSED_ON) process.off(name, passOn);
  return isLost ? EXIT.lost : code;
}
