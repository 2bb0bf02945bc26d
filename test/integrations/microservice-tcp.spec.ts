import { Controller, Get } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { MessagePattern, Payload, Transport, type TcpOptions } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom } from 'rxjs';
import { currentLease, DistributedLock, DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { listen } from '../nest/boot.js';
import { freePort } from '../support/free-port.js';
import { clientOf, closeClients, deskOf, serve, StockController } from './microservice-desk.js';
import { provesEvents, provesMessages } from './microservice-proofs.js';
import { lockAmong, place, way } from './place.js';

const tcp = async (): Promise<TcpOptions> => ({ transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } });

afterEach(closeClients);

place('Microservices', '@MessagePattern over TCP', (order) => provesMessages(order, tcp));

place('Microservices', '@EventPattern over TCP', (order) => provesEvents(order, tcp));

place('Microservices', '@MessagePattern and @Get in one hybrid app', (order) => {
  it('are one lock, taken once, whichever way a call comes', async () => {
    @Controller('stock')
    class Stock {
      @lockAmong(order, { keyTimeout: 60_000, waitTimeout: 0, reentrant: false }, MessagePattern('read'), Get())
      async read() {
        return { key: currentLease()?.key };
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

describe('contention on a locked @MessagePattern', () => {
  const SECRET = 'order-of-alice';
  class Plain {
    @MessagePattern('slow')
    @DistributedLock({ value: SECRET, waitTimeout: 0 })
    async slow(@Payload() _id: string) {
      return currentLease()?.key;
    }
  }
  const contend = async (type: new () => Plain, providers: object[] = []) => {
    const { ask, locks } = await serve(await tcp(), { controllers: [type], providers: providers as never[] });
    await locks.acquire(`${SECRET}-locks`, { keyTimeout: 60_000 });
    return ask('slow', 'a').catch((error: unknown) => error);
  };

  it('is a code of the app’s own with a filter that makes an RpcException of it', async () => {
    const { ask, locks, get } = await serve(await tcp(), { controllers: [StockController] });
    const sale = { id: '1', sku: 'apple', units: 2 };
    expect(await ask('stock.reduce', sale)).toBe(2);
    await locks.acquire('stock-apple-locks', { keyTimeout: 60_000 });
    await expect(ask('stock.reduce', sale)).rejects.toEqual({ status: 'error', code: 'BUSY', message: 'Try again.' });
    expect(get(StockController).sales).toEqual(['2 apple under stock-apple-locks']);
  });

  it('is a code, and names no key, where LockExceptionFilter is the app’s', async () => {
    @Controller()
    class Bare extends Plain {}
    const answer = await contend(Bare, [{ provide: APP_FILTER, useClass: LockExceptionFilter }]);
    expect(JSON.stringify(answer)).not.toContain(SECRET);
    expect(answer).toEqual({ status: 'error', code: 'LOCK_TIMEOUT', message: 'Another request is working on this. Try again.' });
  });
});
