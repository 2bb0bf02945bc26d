import '../support/virtual-time.js';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { boot, type Booted } from '../nest/boot.js';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { InvoiceListener, OrderDesk } from './event-emitter-orders.js';
import { key, lockAmong, aboveAndBelow, way } from './ways.js';

const LONG = { keyTimeout: 60_000 };
const imports = [EventEmitterModule.forRoot({ wildcard: true })];

const emitterOf = ({ app }: Booted) => app.get(EventEmitter2);

aboveAndBelow('Events', '@OnEvent', (order) => {
  it('runs once under its lock for each event, by names and by a wildcard, with all that was emitted', async () => {
    class Listener {
      seen: unknown[] = [];
      @lockAmong(order, { ...LONG, waitTimeout: Infinity }, OnEvent('order.*'), OnEvent('stock.low'))
      async heard(id: string, units: number) {
        this.seen.push([id, units, key()]);
      }
    }
    const booted = await boot({ imports, providers: [Listener] });
    const { seen } = booted.get(Listener);
    expect(emitterOf(booted).emit('order.placed', 'a', 2)).toBe(true);
    await eventually(() => seen.length === 1);
    for (const event of ['order.sent', 'stock.low', 'stock.high']) await emitterOf(booted).emitAsync(event, event, 1);
    expect(seen).toEqual(
      [
        ['a', 2],
        ['order.sent', 1],
        ['stock.low', 1],
      ].map((event) => [...event, 'Listener.heard-locks']),
    );
    expect(booted.acquired).toHaveLength(3);
  });

  it('is one after the other for one key, and beside it for another', async () => {
    class Listener {
      gate = new Gate();
      seen: string[] = [];
      @lockAmong(order, { ...LONG, paramLock: ['0.id'], waitTimeout: Infinity, retryInterval: 10 }, OnEvent('order.placed'))
      async placed({ id, by }: { id: string; by: string }) {
        this.seen.push(`${id} ${by}`);
        await this.gate.pass();
        return by;
      }
    }
    const booted = await boot({ imports, providers: [Listener] });
    const { gate, seen } = booted.get(Listener);
    const emitted = ['ann', 'bob'].flatMap((by) => ['a', 'b'].map((id) => emitterOf(booted).emitAsync('order.placed', { id, by })));
    await eventually(() => gate.arrived === 2 && booted.waiting.length === 2);
    expect(seen).toEqual(['a ann', 'b ann']);
    gate.open();
    expect(await Promise.all(emitted)).toEqual([['ann'], ['ann'], ['bob'], ['bob']]);
    expect(booted.acquired).toHaveLength(4);
  });
});

way('Events', 'a listener that one of several instances runs', () => {
  it('is refused to the caller that comes second, with an error', async () => {
    const booted = await boot({ imports, providers: [InvoiceListener, OrderDesk] });
    const desk = booted.get(OrderDesk);
    expect(await desk.submit('a')).toEqual(['invoice of a']);
    await booted.locks.acquire('invoice-b-locks', LONG);
    expect(await desk.submit('b')).toEqual([]);
    expect(booted.get(InvoiceListener).invoices).toEqual(['a under invoice-a-locks']);
  });
});
