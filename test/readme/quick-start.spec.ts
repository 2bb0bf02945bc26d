import { NestFactory } from '@nestjs/core';
import { eventually } from '../support/eventually.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { Shelf } from './stand-ins/shelf.js';

describe('the example at the top', () => {
  const setting = useRedisOfEnv();

  it('never oversells, and says which key it holds', async () => {
    const { AppModule, StockService } = await import('./stock.service.js');
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    const stock = app.get(StockService);
    await app.get(Shelf).write('apple', 5);

    const buyers = Promise.allSettled(Array.from({ length: 8 }, () => stock.reduce('apple', 1)));
    await eventually(async () => (await setting.redis.keys('shop-stock-*')).some((key) => /^shop-stock-[0-9a-f]{32}-locks$/.test(key)));
    const results = await buyers;

    const left = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(left.sort()).toEqual([0, 1, 2, 3, 4]);
    expect(results.filter((result) => result.status === 'rejected').map(({ reason }) => String(reason))).toEqual(
      Array(3).fill('Error: Sold out'),
    );
    expect(await app.get(Shelf).read('apple')).toBe(0);
    await app.close();
  });
});
