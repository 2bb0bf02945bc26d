import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { closeAll, lockedStock, openShops } from './shops.js';
import type { Shop } from './shop.js';

const BUYERS = 8;

describe('a shop that gets SIGTERM while it sells', () => {
  let server: RedisServer;
  let shops: Shop[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await closeAll(shops);
    await server.stop();
  });

  it('answers those in flight, refuses those that wait, exits with 0 and leaves no lock behind', async () => {
    const [leaver, stayer] = (shops = await openShops(2, server, { WORK_MS: 300 }));
    // A connection that the closing server had not read yet is cut off: refused as well. A sale whose answer was lost shows in the stock below.
    const answers = Array.from({ length: BUYERS }, () => leaver!.post('/reduceStock', { sku: 'apple' }).catch(() => ({ status: 503 })));
    await eventually(async () => Object.keys(await lockedStock(server)).length === 1);

    expect(await leaver!.close()).toBe(0);

    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    const sold = statuses.filter((status) => status === 200).length;
    expect(sold).toBeGreaterThanOrEqual(1);
    expect(statuses.filter((status) => status === 503)).toHaveLength(BUYERS - sold);
    expect(sold).toBeLessThan(BUYERS);
    expect(await lockedStock(server)).toEqual({});
    expect(await stayer!.get('/stock/apple')).toEqual({ sku: 'apple', left: 100 - sold });
    expect(await stayer!.post('/reduceStock', { sku: 'apple' })).toMatchObject({ status: 200, body: { sold: true } });
  });

  it('exits with 0 when it has nothing to do, though connections are open', async () => {
    const [idle] = await openShops(1, server);
    await idle!.get('/stock/apple');
    expect(await idle!.close()).toBe(0);
  });
});
