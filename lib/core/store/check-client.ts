import { configError } from '../model/errors.js';
import { installedVersion, supported } from './client-packages.cjs';

/**
 * Refuses a client that is too old. npm lets an app have any version, because most apps do not use it for locks.
 *
 * @param user the function that needs it, for the message.
 * @param isAble whether it has what the oldest supported version has, and no version before.
 * @param isLent an app may lend a client of another copy than the installed one: then only what it can do counts.
 * @throws {LockConfigError} that names the version which was found and the one that is needed.
 */
export function checkClient(user: string, name: keyof typeof supported, isAble: boolean, isLent = false): void {
  const [needed] = /\d[\d.]+/.exec(supported[name])!;
  const installed = isLent && isAble ? undefined : installedVersion(name);
  const isOld = installed !== undefined && installed.localeCompare(needed, 'en', { numeric: true }) < 0;
  if (isLent || installed === undefined ? isAble : !isOld) return;
  const found = isOld ? `${name} ${installed}` : `this version of ${name}`;
  throw configError('STORE', `${user}: ${found} is too old: version ${needed} or later is needed.`);
}

/** Loads a client that only some apps have. @throws {LockConfigError} that says what to install. */
export async function loadClient<T>(user: string, name: keyof typeof supported, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (!String((cause as NodeJS.ErrnoException).code).endsWith('MODULE_NOT_FOUND')) throw cause;
    throw configError('STORE', `${user}: the package ${name} is not installed: npm install ${name}.`, { cause });
  }
}
