import type { RedisServer } from '../support/redis-server.js';
import { openShop, type Answer, type Shop } from './shop.js';

export function urlOf(server: RedisServer): string {
  return server.path ?? `redis://127.0.0.1:${server.port}`;
}

/** Instances of one shop. */
export function openShops(count: number, server: RedisServer, env: Record<string, string | number> = {}): Promise<Shop[]> {
  return Promise.all(Array.from({ length: count }, () => openShop({ REDIS_URL: urlOf(server), ...env })));
}

export async function closeAll(shops: readonly Shop[]): Promise<void> {
  await Promise.all(shops.map((shop) => shop.close()));
}

/** Keys of stock that is locked right now, by whom. */
export async function lockedStock(server: RedisServer): Promise<Record<string, string | null>> {
  const client = server.client();
  const keys = await client.keys('shop-stock-*-locks');
  const owners = await Promise.all(keys.map((key) => client.get(key)));
  client.disconnect();
  return Object.fromEntries(keys.map((key, index) => [key, owners[index] ?? null]));
}

export interface Sales {
  requests: number;
  statuses: number[];
  sold: number;
  left: number;
}

/** So many buyers at once, one after the other at each instance. */
export async function rush(shops: readonly Shop[], path: string, sku: string, requests: number): Promise<Sales> {
  const answers = await Promise.all(Array.from({ length: requests }, (_, i) => shops[i % shops.length]!.post(path, { sku })));
  return {
    requests,
    statuses: [...new Set(answers.map(({ status }) => status))],
    sold: answers.filter(({ body }) => body.sold).length,
    left: (await shops[0]!.get<Answer>(`/stock/${sku}`)).left,
  };
}
