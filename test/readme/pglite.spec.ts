import { forkChild } from '../support/child.js';
import { byPglite } from './pglite.js';

it('PGlite grants, excludes, wakes waiters by a message, and its transactions are refused', async () => {
  expect(byPglite({} as Parameters<typeof byPglite>[0]).supports('wakeUps')).toBe(true);
  // Jest cannot run it.
  const child = await forkChild<{ type: 'seen'; seen: unknown[] }>('test/readme/pglite.child.ts');
  const { seen } = await child.waitFor('seen');
  expect(seen).toEqual([null, true, null, true, null, true, expect.stringMatching(/^LockConfigError: .* inside a transaction/)]);
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
