import { Controller, Get, Post } from '@nestjs/common';
import { ReadLock, Semaphore, WriteLock, currentLease } from 'nestjs-distributed-lock';
import { Gate } from '../nest/gate.js';
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve } from './http-app.js';
import { among, place } from './place.js';

const LONG = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 5 };

place('HTTP', '@Get with @ReadLock and @Post with @WriteLock, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('serves readers together, and a writer alone (%s)', async (adapter) => {
    @Controller('page')
    class PageController {
      readonly gate = new Gate();
      writes = 0;
      @among(order, ReadLock({ value: 'page', ...LONG }), Get())
      async read() {
        await this.gate.pass();
        return { writes: this.writes, key: currentLease()?.key };
      }
      @among(order, WriteLock({ value: 'page', ...LONG }), Post())
      async write() {
        return { writes: ++this.writes };
      }
    }
    const { ask, post, get, waiting } = await serve(adapter, { controllers: [PageController] });
    const { gate } = get(PageController);
    const readers = [ask('page'), ask('page'), ask('page')];
    await eventually(() => gate.arrived === 3);
    const writer = post('page');
    await eventually(() => expect(waiting).toEqual(['page-locks']));
    gate.open();
    for (const reader of readers) expect((await reader).body).toEqual({ writes: 0, key: 'page-locks' });
    expect((await writer).body).toEqual({ writes: 1 });
  });
});

place('HTTP', '@Post with @Semaphore, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('serves as many requests at a time as there are permits (%s)', async (adapter) => {
    @Controller('exports')
    class ExportController {
      readonly gate = new Gate();
      inside = 0;
      most = 0;
      @among(order, Semaphore({ permits: 2, ...LONG }), Post())
      async export() {
        this.most = Math.max(this.most, ++this.inside);
        await this.gate.pass();
        this.inside--;
        return { key: currentLease()?.key };
      }
    }
    const { post, get, waiting } = await serve(adapter, { controllers: [ExportController] });
    const exporter = get(ExportController);
    const calls = Array.from({ length: 5 }, () => post('exports'));
    await eventually(() => waiting.length === 3);
    expect(exporter.gate.arrived).toBe(2);
    exporter.gate.open();
    for (const call of calls) expect((await call).body).toEqual({ key: 'ExportController.export-locks' });
    expect(exporter.most).toBe(2);
  });
});
