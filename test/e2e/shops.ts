import { startRedis, type RedisServer } from '../support/redis-server.js';
import { openShop, type Answer, type Shop } from './shop.js';

export function urlOf(server: RedisServer): string {
  return `redis://127.0.0.1:${server.port}`;
}

/** Shops of a test file on one Redis. They end with its tests. */
export function useShops() {
  const opened: Shop[] = [];
  let server: RedisServer;
  beforeAll(async () => void (server = await startRedis({ port: 'free' })));
  afterAll(async () => {
    await Promise.all(opened.map((shop) => shop.kill()));
    await server.stop();
  });
  return {
    async open(env: Record<string, string | number> = {}, main?: string): Promise<Shop> {
      const shop = await openShop({ STORE_URL: urlOf(server), ...env }, main);
      opened.push(shop);
      return shop;
    },
    /** So many buyers at once of 50 units, one after the other at each instance. */
    async rush(shops: readonly Shop[], path: string, sku: string, requests: number) {
      await shops[0]!.put(`/stock/${sku}`, { units: 50 });
      const answers = await Promise.all(Array.from({ length: requests }, (_, i) => shops[i % shops.length]!.post(path, { sku })));
      return {
        statuses: [...new Set(answers.map(({ status }) => status))],
        sold: answers.filter(({ body }) => body.sold).length,
        left: (await shops[0]!.get<Answer>(`/stock/${sku}`)).left,
      };
    },
    /** Keys of stock that is locked right now. */
    async lockedStock(): Promise<string[]> {
      const client = server.client();
      const keys = await client.keys('shop:stock-*-locks');
      client.disconnect();
      return keys;
    },
  };
}
