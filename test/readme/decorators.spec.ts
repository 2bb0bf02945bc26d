import type { Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import { OrderLinesService, OrdersController, PartnerService, Shelf } from './decorators.js';

let app: TestingModule;
afterEach(() => app.close());

async function appWith(providers: Type[], controllers: Type[] = []): Promise<TestingModule> {
  const imports = [DistributedLockModule.forRoot({ store: memoryStore(), logger: false })];
  return (app = await Test.createTestingModule({ imports, controllers, providers }).compile());
}

it('onTimeout answers 409 where the key is taken', async () => {
  const server = (await (await appWith([], [OrdersController])).createNestApplication().listen(0, '127.0.0.1')) as Server;
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders/7/pay`;
  const pay = () => fetch(url, { method: 'POST', headers: { connection: 'close' } });
  const lease = await app.get(Locks).acquire('order-7-locks', { keyTimeout: 60_000 });
  const refused = await pay();
  await lease.release();
  const paid = await pay();
  server.close();
  expect([refused.status, await refused.json()]).toMatchObject([409, { message: 'This order is being paid already.' }]);
  expect([paid.status, await paid.text()]).toEqual([201, '7 is paid']);
});

it('calls of one call chain are safe one after the other, and not at the same time', async () => {
  await appWith([OrderLinesService, Shelf]);
  const [lines, shelf] = [app.get(OrderLinesService), app.get(Shelf)];
  await shelf.write('apple', 10);
  await Promise.all([lines.takeTwo('apple'), lines.take('apple'), lines.take('apple')]);
  expect(await shelf.read('apple')).toBe(6);
  await lines.takeTwoAtOnce('apple');
  expect(await shelf.read('apple')).toBe(5);
});

it('permits with a minHold limit a rate', async () => {
  const partner = (await appWith([PartnerService])).get(PartnerService);
  await Promise.all(Array.from({ length: 11 }, (_, order) => partner.send(`order ${order}`)));
  const gaps = partner.starts.slice(5).map((start, index) => start - partner.starts[index]!);
  expect(gaps).toHaveLength(6);
  expect(Math.min(...gaps)).toBeGreaterThan(500); // 1,000 less what a busy machine takes between a grant and its call
});
