import type { Locks, LockLogger } from 'nestjs-distributed-lock/core';

/** What is used of pino. */
type Pino = Record<'warn' | 'error' | 'info' | 'debug', (fields: unknown, message: string) => void>;

// #region is-ready
/** Whether the locks work, for a load balancer. */
export async function isReady(locks: Locks): Promise<boolean> {
  const { isUp, degraded } = await locks.health(500);
  if (degraded.length > 0) console.warn(degraded.join(', '));
  return isUp;
}
// #endregion

// #region pino-logger
/** Writes fields of their own for pino. */
export function pinoLogger(pino: Pino): LockLogger {
  return {
    wantsDetails: true,
    warn: (message, details) => pino.warn(details, message),
    error: (message, details) => pino.error(details, message),
    log: (message, details) => pino.info(details, message),
    debug: (message, details) => pino.debug(details, message),
  };
}
// #endregion

// #region without-keys
const hidden = (message: string) => message.replace(/".*"/g, '"…"');
export const withoutKeys: LockLogger = {
  warn: (message) => console.warn(hidden(message)),
  error: (message) => console.error(hidden(message)),
};
// #endregion
