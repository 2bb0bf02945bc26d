import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { lockedStock, urlOf } from './shops.js';
import { openShop, type Shop } from './shop.js';

describe('two SKUs', () => {
  let server: RedisServer;
  const shops: Shop[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await Promise.all(shops.map((shop) => shop.kill()));
    await server.stop();
  });

  it('do not wait for each other, while the same SKU does', async () => {
    const slow = await openShop({ REDIS_URL: urlOf(server), WORK_MS: 600_000 });
    const quick = await openShop({ REDIS_URL: urlOf(server), WORK_MS: 1 });
    shops.push(slow, quick);
    const endless = slow.post('/reduceStock', { sku: 'apple' }).catch(() => 'no answer');
    await eventually(async () => Object.keys(await lockedStock(server)).length === 1);
    const held = await lockedStock(server);

    const apple = quick.post('/reduceStock', { sku: 'apple' });
    const pear = await quick.post('/reduceStock', { sku: 'pear' });

    expect(pear).toEqual({ status: 200, body: { sku: 'pear', sold: true, left: 99 } });
    expect(await lockedStock(server)).toEqual(held);
    await quick.close();
    expect((await apple).status).toBe(503);
    await slow.kill();
    expect(await endless).toBe('no answer');
  });
});
