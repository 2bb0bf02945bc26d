// The sample app, and the demo that builds on it, as processes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../support/eventually.js';
import { openShop, type Shop } from './shop.js';
import { useShops } from './shops.js';

describe('instances of a shop on one Redis', () => {
  const { open, rush, lockedStock } = useShops();
  let shops: Shop[];
  beforeAll(async () => void (shops = await Promise.all([open({ WORK_MS: 5 }), open({ WORK_MS: 5 })])));

  it.each(['/reduceStock', '/stock/lock/reduce'])('sell exactly what there is at %s, and answer each request', async (path) => {
    expect(await rush(shops, path, 'lock', 150)).toEqual({ statuses: [200], sold: 50, left: 0 });
  });

  it.each(['none', 'local'])('sell more than there is with version "%s"', async (version) => {
    const { statuses, sold } = await rush(shops, `/stock/${version}/reduce`, version, 150);
    expect(statuses).toEqual([200]);
    expect(sold).toBeGreaterThan(50);
  });

  it('answer calls in flight on SIGTERM, refuse waiting ones, exit with 0 and leave no lock behind', async () => {
    const [stayer, leaver] = [shops[0]!, await open({ WORK_MS: 500 })];
    const { left: before } = await stayer.get('/stock/pear');
    // A connection that the closing server had not read yet is cut off: refused as well. A sale whose answer was lost shows in the stock below.
    const sell = () => leaver.post('/reduceStock', { sku: 'pear' }).catch(() => ({ status: 503 }));
    const answers = Array.from({ length: 50 }, sell);
    await eventually(async () => (await lockedStock()).length === 1);
    expect(await leaver.close()).toBe(0);
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    const sold = statuses.filter((status) => status === 200).length;
    expect(sold).toBeGreaterThanOrEqual(1);
    expect(sold).toBeLessThan(50);
    expect(statuses.filter((status) => status === 503)).toHaveLength(50 - sold);
    expect(await lockedStock()).toEqual([]);
    expect((await stayer.get('/stock/pear')).left).toBe(before - sold);
    expect(await stayer.post('/reduceStock', { sku: 'pear' })).toMatchObject({ status: 200, body: { sold: true } });
  });

  it('exit with 0 when they have nothing to do, though connections are open', async () => {
    await shops[1]!.get('/stock/apple');
    expect(await shops[1]!.close()).toBe(0);
  });
});

describe('without a server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shop-'));
  const env = { STORE_URL: pathToFileURL(folder).href, WORK_MS: 1, DASHBOARD_PASSWORD: 'secret' };
  let shop: Shop;
  let demo: Shop;
  beforeAll(async () => void ([shop, demo] = await Promise.all([openShop(env, 'sample-app/src/main.js'), openShop(env)])));
  afterAll(async () => {
    await Promise.all([shop.kill(), demo.kill()]);
    rmSync(folder, { recursive: true });
  });

  it('is ready, has metrics of its locks, and a dashboard behind a password', async () => {
    expect(await shop.get('/health/ready')).toMatchObject({ status: 'ok', info: { locks: { status: 'up' } } });
    expect(await (await fetch(`${shop.url}/metrics`)).text()).toMatch(/^distributed_lock_request_duration_seconds_count\{.*"acquire"/m);
    const page = (password: string) => fetch(`${shop.url}/locks`, { headers: { authorization: `Basic ${btoa(`ops:${password}`)}` } });
    expect([(await page('secret')).status, (await page('wrong')).status]).toEqual([200, 401]);
  });

  it('sells one apple where no SKU is given', async () => {
    await shop.put('/stock/apple', { units: 3 });
    expect(await shop.post('/reduceStock')).toEqual({ status: 200, body: { sku: 'apple', sold: true, left: 2 } });
    expect(await shop.post('/reduceStock', { units: 2 })).toEqual({ status: 200, body: { sku: 'apple', sold: true, left: 0 } });
  });

  it.each(['none', 'local', 'naive', 'lock'])('answers that it is sold out, which is no error, with version "%s"', async (version) => {
    await shop.put('/stock/pear', { units: 1 });
    const reduce = (units: number) => demo.post(`/stock/${version}/reduce`, { sku: 'pear', units });
    expect(await reduce(2)).toEqual({ status: 200, body: { sku: 'pear', sold: false, left: 1 } });
    expect(await reduce(1)).toEqual({ status: 200, body: { sku: 'pear', sold: true, left: 0 } });
    expect(await reduce(1)).toEqual({ status: 200, body: { sku: 'pear', sold: false, left: 0 } });
  });

  it.each([
    [{ sku: '' }, 'sku must match'],
    [{ sku: 'no spaces' }, 'sku must match'],
    [{ sku: null }, 'sku must match'],
    [{ sku: { $ne: 'apple' } }, 'sku must match'],
    [{ units: 0 }, 'units must not be less than 1'],
    [{ units: 1.5 }, 'units must be an integer number'],
    [{ units: '1' }, 'units must be an integer number'],
    [{ units: 1_001 }, 'units must not be greater than 1000'],
    [{ price: 1 }, 'property price should not exist'],
  ])('answers 400 to %j', async (body, reason) => {
    const answer = await shop.post('/reduceStock', body);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.arrayContaining([expect.stringContaining(reason)]) } });
  });

  it('answers 400 to a version or a SKU in the path that is none, and 404 to a SKU that it does not have', async () => {
    expect(await demo.post('/stock/best/reduce', { sku: 'apple' })).toMatchObject({ status: 400 });
    expect(await shop.put('/stock/APPLE', { units: 1 })).toMatchObject({ status: 400 });
    expect(await shop.put('/stock/apple', { units: -1 })).toMatchObject({ status: 400 });
    // The error of a locked method comes through.
    expect(await shop.post('/reduceStock', { sku: 'unicorn' })).toMatchObject({ status: 404 });
  });
});
