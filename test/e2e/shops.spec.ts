// What takes several instances of the shop, or seconds of a clock.
import { eventually } from '../support/eventually.js';
import { useShops } from './shops.js';

const { open, rush, lockedStock } = useShops();

it('two SKUs do not wait for each other, while the same SKU does', async () => {
  const [slow, quick] = [await open({ WORK_MS: 600_000 }), await open({ WORK_MS: 1 })];
  const endless = slow.post('/reduceStock', { sku: 'apple' }).catch(() => 'no answer');
  await eventually(async () => Object.keys(await lockedStock()).length === 1);
  const held = await lockedStock();
  const apple = quick.post('/reduceStock', { sku: 'apple' });
  expect(await quick.post('/reduceStock', { sku: 'pear' })).toEqual({ status: 200, body: { sku: 'pear', sold: true, left: 99 } });
  expect(await lockedStock()).toEqual(held);
  await quick.close();
  expect((await apple).status).toBe(503);
  await slow.kill();
  expect(await endless).toBe('no answer');
});

it('a lock that ends before the work does oversells', async () => {
  // Each sale outlasts its mark by far, while hundreds try to take it.
  const env = { WORK_MS: 1_000, NAIVE_EXPIRY_MS: 10 };
  const shops = await Promise.all([open(env), open(env), open(env)]);
  expect((await rush(shops, '/stock/naive/reduce', 'naive', 300)).sold).toBeGreaterThan(50);
});

it('the mutex of a process is enough for one that sells alone', async () => {
  expect(await rush([await open({ WORK_MS: 5 })], '/stock/local/reduce', 'alone', 150)).toEqual({ statuses: [200], sold: 50, left: 0 });
});

describe('with a Redis of their own', () => {
  const alone = useShops();

  it('the stocktake of three instances runs once per tick, and goes on when two of them are killed', async () => {
    const shops = await Promise.all(Array.from({ length: 3 }, () => alone.open({}, 'sample-app/src/main.js')));
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
});
