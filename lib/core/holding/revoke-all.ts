import { LockLostError } from '../model/errors.js';
import type { Lifecycle } from './lifecycle.js';
import { watchdog } from './watchdog.js';

/** Releases the leases that are left when the locks are closed. Leases that guard no body should have been released before. */
export async function revokeAll(runtime: Lifecycle): Promise<void> {
  const held = watchdog.tenuresOf(runtime).flatMap(({ turn }) => turn.leases);
  const keys = [...new Set(held.filter(({ guardsBody }) => !guardsBody).map(({ key }) => key))];
  if (keys.length > 0) {
    const names = keys.map((key) => `"${key}"`).join(', ');
    runtime.events.warn(
      `Closed while leases were held that nobody had released: ${names}. Use \`await using\`, or release() in a finally.`,
      {
        keys,
      },
    );
  }
  await Promise.all(held.map((lease) => lease.revoke(new LockLostError('The lease was released because the locks were closed.'))));
}
