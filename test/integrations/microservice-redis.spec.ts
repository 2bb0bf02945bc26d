import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, RedisContext, Transport, type RedisOptions } from '@nestjs/microservices';
import { currentLease } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { closeClients, serve, StockController } from './microservice-desk.js';
import { provesEvents, provesMessages } from './microservice-proofs.js';
import { lockAmong, place, way } from './place.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ port: 'free' });
});
afterEach(closeClients);
afterAll(() => server.stop());

const redis = async (options: object = {}): Promise<RedisOptions> => ({
  transport: Transport.REDIS,
  options: { host: '127.0.0.1', port: server.port!, ...options },
});

place('Microservices', '@MessagePattern over Redis', (order) => provesMessages(order, redis));

place('Microservices', '@EventPattern over Redis', (order) => provesEvents(order, redis));

place('Microservices', '@EventPattern with a wildcard over Redis', (order) => {
  it('handles the event under its lock, and sees the channel', async () => {
    @Controller()
    class Listener {
      seen: unknown[] = [];
      @lockAmong(order, { keyTimeout: 60_000 }, EventPattern<string>('stock.*'))
      async heard(@Ctx() context: RedisContext) {
        this.seen.push([context.getChannel(), currentLease()?.key]);
      }
    }
    const { tell, get, acquired } = await serve(await redis({ wildcards: true }), { controllers: [Listener] });
    await tell('stock.low', {});
    await eventually(() => get(Listener).seen.length > 0);
    expect(get(Listener).seen).toEqual([['stock.low', 'Listener.heard-locks']]);
    expect(acquired).toEqual(['Listener.heard-locks']);
  });
});

way('Microservices', 'an event that every instance receives', () => {
  it('is worked on by one of them', async () => {
    const store = memoryStore();
    const [first, second] = [
      await serve(await redis(), { controllers: [StockController] }, store),
      await serve(await redis(), { controllers: [StockController] }, store),
    ];
    let skipped = 0;
    for (const { locks } of [first, second]) locks.on('timeout', () => skipped++);
    const sold = ['a', 'b', 'c'].map((id) => ({ id, sku: `apple-${id}`, units: 1 }));
    for (const sale of sold) await first.tell('stock.sold', sale);
    await eventually(() => skipped === sold.length);
    const sales = [first, second].flatMap(({ get }) => get(StockController).sales);
    expect(sales.toSorted()).toEqual(sold.map(({ id }) => `1 apple-${id} under sold-${id}-locks`));
  });
});
