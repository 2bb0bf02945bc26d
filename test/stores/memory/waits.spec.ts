import { forkChild } from '../../support/child.js';

it('a process that waits without a limit stays until its work has run, and then ends by itself (G8)', async () => {
  const child = await forkChild('test/stores/memory/waits.child.ts');
  await child.waitFor('ran');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
