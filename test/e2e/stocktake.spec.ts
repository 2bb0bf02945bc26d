import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { closeAll, openShops } from './shops.js';
import type { Shop } from './shop.js';

const SECONDS = 2;

describe('the stocktake cron of three instances', () => {
  let server: RedisServer;
  let shops: Shop[] = [];

  beforeAll(async () => {
    server = await startRedis();
    shops = await openShops(3, server, { STOCKTAKE_SECONDS: SECONDS });
  });

  afterAll(async () => {
    await closeAll(shops);
    await server.stop();
  });

  async function ticksAfter(count: number): Promise<Record<string, number>> {
    const last = shops.at(-1)!;
    const before = Object.keys(await last.get('/stocktakes')).length;
    return eventually(
      async () => {
        const runs = await last.get<Record<string, number>>('/stocktakes');
        return Object.keys(runs).length >= before + count && runs;
      },
      { within: 15_000, every: 50 },
    ) as Promise<Record<string, number>>;
  }

  function expectOncePerTick(runs: Record<string, number>) {
    const ticks = Object.keys(runs).map(Number).sort();
    expect(ticks).toEqual(ticks.map((_, index) => ticks[0]! + index * SECONDS));
    expect(Object.values(runs)).toEqual(ticks.map(() => 1));
  }

  it('runs once per tick, and goes on when two of them are killed', async () => {
    expectOncePerTick(await ticksAfter(3));
    for (const shop of shops.slice(0, 2)) shop.signal('SIGKILL');
    expectOncePerTick(await ticksAfter(2));
  });
});
