import { resolve } from 'node:path';

it('the pages and charts of bench are what the results make them: npm run bench -- --report writes them', async () => {
  const { outdatedPages } = (await import(resolve('bench/report/write.mjs'))) as { outdatedPages: () => Promise<string[]> };
  expect(await outdatedPages()).toEqual([]);
});
