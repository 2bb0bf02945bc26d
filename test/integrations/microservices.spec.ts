import { Controller, Get } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { MessagePattern, Payload, Transport, type RedisOptions, type TcpOptions } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom } from 'rxjs';
import { DistributedLock, DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { listen } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { useRedis } from '../stores/redis/setting.js';
import { clientOf, closeClients, deskOf, serve, StockController } from './microservice-desk.js';
import { key, lockAmong, aboveAndBelow, way, type Order } from './ways.js';

const setting = useRedis({ port: 'free' });
afterEach(closeClients);

const redis = async (): Promise<RedisOptions> => ({
  transport: Transport.REDIS,
  options: { host: '127.0.0.1', port: setting.server.port! },
});
const tcp = async (): Promise<TcpOptions> => ({ transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } });

/** What holds for a locked `@MessagePattern` over any transport. */
function provesMessages(order: Order, transport: typeof redis | typeof tcp): void {
  const open = async () => {
    const Desk = deskOf(order);
    const served = await serve(await transport(), { controllers: [Desk] });
    return { ...served, desk: served.get(Desk) };
  };

  it('answers under its lock, taken once, by what its pipe made of the payload, and with its context', async () => {
    const { ask, acquired } = await open();
    const [apple, padded] = [await ask('reduce', { sku: 'apple' }), await ask('reduce', { sku: ' apple ' })];
    expect(apple).toEqual({ sku: 'apple', key: expect.stringMatching(/^reduce-[0-9a-f]{32}-locks$/), context: true });
    expect(padded).toEqual(apple);
    expect(acquired).toEqual(Array(2).fill((apple as { key: string }).key));
  });

  it('answers with all of an Observable under one lock, passes its RpcException on, and releases the lock', async () => {
    const { all, ask, acquired, isTaken } = await open();
    expect(await all('count', [1, 2, 3])).toEqual([1, 2, 3].map((unit) => ({ unit, key: 'Desk.count-locks' })));
    await expect(ask('refuse', {})).rejects.toEqual({ code: 409, message: 'sold out under Desk.refuse-locks' });
    expect(acquired).toEqual(['Desk.count-locks', 'Desk.refuse-locks']);
    expect(await Promise.all(acquired.map(isTaken))).toEqual([false, false]);
  });

  it('answers contention as any unknown error, and runs beside it for another key', async () => {
    const { ask, desk } = await open();
    const first = ask('slow', 'a');
    await eventually(() => desk.gate.arrived === 1);
    await expect(ask('slow', 'a')).rejects.toEqual({ status: 'error', message: 'Internal server error' });
    const other = ask('slow', 'b');
    await eventually(() => desk.gate.arrived === 2);
    desk.gate.open();
    expect(await Promise.all([first, other])).toEqual(['Desk.slow-a-locks', 'Desk.slow-b-locks']);
    expect(await ask('slow', 'a')).toBe('Desk.slow-a-locks');
    expect(desk.seen).toEqual(['a', 'b', 'a']);
  });
}

/** What holds for a locked `@EventPattern` over any transport. */
function provesEvents(order: Order, transport: typeof redis | typeof tcp): void {
  it('handles events under its lock, taken once for each, one after the other', async () => {
    const Desk = deskOf(order);
    const { tell, get, acquired, locks } = await serve(await transport(), { controllers: [Desk] });
    const lease = await locks.acquire('Desk.sold-locks', { keyTimeout: 60_000 });
    for (const id of ['a', 'b', 'c']) await tell('sold', id);
    expect(get(Desk).seen).toEqual([]);
    await lease.release();
    await eventually(() => get(Desk).seen.length === 3);
    expect(new Set(get(Desk).seen)).toEqual(new Set(['a', 'b', 'c'].map((id) => [id, 'Desk.sold-locks', true])));
    expect(acquired).toEqual(Array(4).fill('Desk.sold-locks'));
  });
}

aboveAndBelow('Microservices', '@MessagePattern over Redis', (order) => provesMessages(order, redis));

aboveAndBelow('Microservices', '@EventPattern over Redis', (order) => provesEvents(order, redis));

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

aboveAndBelow('Microservices', '@MessagePattern over TCP', (order) => provesMessages(order, tcp));

aboveAndBelow('Microservices', '@EventPattern over TCP', (order) => provesEvents(order, tcp));

aboveAndBelow('Microservices', '@MessagePattern and @Get in one hybrid app', (order) => {
  it('are one lock, taken once, whichever way a call comes', async () => {
    @Controller('stock')
    class Stock {
      @lockAmong(order, { keyTimeout: 60_000, waitTimeout: 0, reentrant: false }, MessagePattern('read'), Get())
      async read() {
        return { key: key() };
      }
    }
    const { app, ask, acquired, locks } = await serve(await tcp(), { controllers: [Stock] });
    const url = await listen(app);
    expect(await (await fetch(`${url}/stock`)).json()).toEqual({ key: 'Stock.read-locks' });
    expect(await ask('read', {})).toEqual({ key: 'Stock.read-locks' });
    expect(acquired).toEqual(['Stock.read-locks', 'Stock.read-locks']);
    await using _held = await locks.acquire('Stock.read-locks', { keyTimeout: 60_000 });
    expect((await fetch(`${url}/stock`)).status).toBe(500);
    await expect(ask('read', {})).rejects.toEqual({ status: 'error', message: 'Internal server error' });
  });
});

way('Microservices', 'an app that is a microservice only', () => {
  it.each(['above', 'below'] as const)('locks, the lock %s', async (order) => {
    const options = await tcp();
    const imports = [DistributedLockModule.forRoot({ store: memoryStore(), logger: false })];
    const module = await Test.createTestingModule({ imports, controllers: [deskOf(order)] }).compile();
    const app = module.createNestMicroservice({ ...options, logger: false });
    await app.listen();
    const client = clientOf(options);
    expect(await firstValueFrom(client.send('reduce', { sku: 'apple' }))).toMatchObject({ key: expect.stringMatching(/^reduce-/) });
    await client.close();
    await app.close();
  });
});

const sale = { id: '1', sku: 'apple', units: 2 };
@Controller()
class Plain {
  @MessagePattern('stock.reduce')
  @DistributedLock({ value: 'stock', key: (sold: typeof sale) => sold.sku, waitTimeout: 0 })
  async reduce(@Payload() { units }: typeof sale) {
    return units;
  }
}
const ofTheApp = { provide: APP_FILTER, useClass: LockExceptionFilter };
const message = 'Another request is working on this. Try again.';

it.each<[string, (new () => object)[], object[], object]>([
  ['of the app’s own with a filter that makes an RpcException of it', [StockController], [], { code: 'BUSY', message: 'Try again.' }],
  ['that names no key, where LockExceptionFilter is the app’s', [Plain], [ofTheApp], { code: 'LOCK_TIMEOUT', message }],
])('contention on a locked @MessagePattern is a code %s', async (_what, controllers, providers, answer) => {
  const { ask, locks } = await serve(await tcp(), { controllers, providers: providers as never[] });
  expect(await ask('stock.reduce', sale)).toBe(2);
  await locks.acquire('stock-apple-locks', { keyTimeout: 60_000 });
  await expect(ask('stock.reduce', sale)).rejects.toEqual({ status: 'error', ...answer });
});
