import { forkChild } from '../../support/child.js';

test('a program that does nothing but wait for its key is not over while others are faster', async () => {
  const child = await forkChild<{ type: 'granted' }>('test/stores/records/alone.child.ts');
  await child.waitFor('granted');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});
