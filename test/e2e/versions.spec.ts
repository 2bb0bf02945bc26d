import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Shop } from './shop.js';
import { closeAll, openShops, rush } from './shops.js';

const STOCK = 100;
const REQUESTS = 300;

describe('three instances of the shop', () => {
  let server: RedisServer;
  let shops: Shop[] = [];

  beforeAll(async () => {
    server = await startRedis();
    shops = await openShops(3, server, { WORK_MS: 5, SLOW_WORK_MS: 40, NAIVE_EXPIRY_MS: 20 });
  });

  afterAll(async () => {
    await closeAll(shops);
    await server.stop();
  });

  async function sell(path: string, sku: string) {
    await shops[0]!.put(`/stock/${sku}`, { units: STOCK });
    return rush(shops, path, sku, REQUESTS);
  }

  it.each(['/reduceStock', '/stock/lock/reduce'])('sell exactly what there is at %s, and answer each request', async (path) => {
    expect(await sell(path, 'lock')).toEqual({ requests: REQUESTS, statuses: [200], sold: STOCK, left: 0 });
  });

  it.each(['none', 'local', 'naive'])('sell more than there is with version "%s"', async (version) => {
    const { statuses, sold } = await sell(`/stock/${version}/reduce`, version);
    expect(statuses).toEqual([200]);
    expect(sold).toBeGreaterThan(STOCK);
  });

  it('sell exactly what there is of one thing with the mutex of the process, when one of them sells alone', async () => {
    await shops[0]!.put('/stock/alone', { units: STOCK });
    expect(await rush(shops.slice(0, 1), '/stock/local/reduce', 'alone', REQUESTS)).toMatchObject({ sold: STOCK, left: 0 });
  });
});
