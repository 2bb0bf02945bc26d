// What takes seconds of a clock.
import { eventually } from '../support/eventually.js';
import { useShops } from './shops.js';

const { open, rush } = useShops();

it('a lock that ends before the work does oversells', async () => {
  // Each sale outlasts its mark by far, while hundreds try to take it.
  const env = { WORK_MS: 1_000, NAIVE_EXPIRY_MS: 10 };
  const shops = await Promise.all([open(env), open(env), open(env)]);
  expect((await rush(shops, '/stock/naive/reduce', 'naive', 300)).sold).toBeGreaterThan(50);
});

it('the stocktake of three instances runs once per tick, and goes on when two of them are killed', async () => {
  const shops = await Promise.all(Array.from({ length: 3 }, () => open({}, 'sample-app/src/main.js')));
  const ticks = (): number[] =>
    shops.flatMap((shop) =>
      [...shop.log().matchAll(/100 apple, .* at (\S+)$/gm)].map(([, time]) => Math.round(Date.parse(time!) / 10_000)),
    );
  await eventually(() => ticks().length >= 2, { every: 50 });
  const before = ticks().length;
  for (const shop of shops.slice(1)) shop.signal('SIGKILL');
  await eventually(() => ticks().length >= before + 2, { every: 50 });
  expect(new Set(ticks()).size).toBe(ticks().length);
});
