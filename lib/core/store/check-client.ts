import { configError } from '../model/errors.js';

/** The oldest version of each client that the tests run on. npm may install any version beside this package, because most apps do not use it for locks. */
export const OLDEST = {
  ioredis: '5.3.0',
  redis: '5.1.0',
  pg: '8.7.0',
  mysql2: '2.3.3',
  'node-zookeeper-client': '1.1.3',
  'prom-client': '13.0.0',
  '@opentelemetry/api': '1.3.0',
} as const;

/**
 * @param user the function that needs it, for the message.
 * @param isAble whether it has what versions that are too old do not have.
 * @throws {LockConfigError} that names the version which is needed.
 */
export function checkClient(user: string, name: keyof typeof OLDEST, isAble: boolean): void {
  if (!isAble) throw configError('STORE', `${user}: this version of ${name} is too old: version ${OLDEST[name]} or later is needed.`);
}

/** Loads a client that only some apps have. @throws {LockConfigError} that says what to install. */
export async function loadClient<T>(user: string, name: keyof typeof OLDEST, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (!String((cause as NodeJS.ErrnoException).code).endsWith('MODULE_NOT_FOUND')) throw cause;
    throw configError('STORE', `${user}: the package ${name} is not installed: npm install ${name}.`, { cause });
  }
}
