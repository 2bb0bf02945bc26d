import { UseFilters } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { currentLease, DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { place } from './place.js';
import { BusyWsFilter, gatewayOf, serveSockets } from './socket-io-gateway.js';

const INTERNAL = { status: 'error', message: 'Internal server error' };
const CODE = { status: 'error', message: 'Another request is working on this. Try again.', code: 'LOCK_TIMEOUT' };

interface Frame {
  event: string;
  data: unknown;
}

const sockets: WebSocket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.terminate();
});

async function serve(metadata: Parameters<typeof serveSockets>[0]) {
  const served = await serveSockets(metadata, (app) => app.useWebSocketAdapter(new WsAdapter(app)));
  const connect = async () => {
    const socket = new WebSocket(served.url.replace('http', 'ws'));
    sockets.push(socket);
    const heard: Frame[] = [];
    socket.on('message', (frame: Buffer) => heard.push(JSON.parse(frame.toString()) as Frame));
    await once(socket, 'open');
    return { heard, emit: (event: string, data: unknown) => socket.send(JSON.stringify({ event, data })) };
  };
  return { ...served, ...(await connect()), connect };
}

place('WebSockets', '@SubscribeMessage with ws', (order) => {
  const open = async () => {
    const Gateway = gatewayOf(order);
    const served = await serve({ providers: [Gateway] });
    return { ...served, gateway: served.get(Gateway) };
  };

  it('answers under its lock, taken once, by what its pipe made of the body, and with its socket', async () => {
    const { emit, heard, acquired, gateway } = await open();
    emit('reduce', 'apple');
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([{ event: 'reduced', data: { sku: 'APPLE', key: 'StockGateway.reduce-APPLE-locks' } }]);
    expect(acquired).toEqual(['StockGateway.reduce-APPLE-locks']);
    expect([...gateway.clients].map((client) => (client as WebSocket).readyState)).toEqual([WebSocket.OPEN]);
  });

  it('answers with what it returns, which need not be an event', async () => {
    const { emit, heard, acquired } = await open();
    emit('ack', {});
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([{ key: 'StockGateway.ack-locks' }]);
    expect(acquired).toEqual(['StockGateway.ack-locks']);
  });

  it('sends all of an Observable, under one lock', async () => {
    const { emit, heard, acquired, isTaken } = await open();
    emit('count', [1, 2, 3]);
    await eventually(() => heard.length === 3);
    expect(heard).toEqual([1, 2, 3].map((unit) => ({ event: 'unit', data: { unit, key: 'StockGateway.count-locks' } })));
    expect(acquired).toEqual(['StockGateway.count-locks']);
    await eventually(async () => !(await isTaken('StockGateway.count-locks')));
  });

  it('passes its WsException on, and gives the lock back', async () => {
    const { emit, heard, isTaken } = await open();
    emit('refuse', {});
    await eventually(() => heard.length > 0);
    const data = expect.objectContaining({ message: 'sold out under StockGateway.refuse-locks' }) as unknown;
    expect(heard).toEqual([{ event: 'exception', data }]);
    expect(await isTaken('StockGateway.refuse-locks')).toBe(false);
  });

  it('is held by one message for a key, and by messages for other keys beside it', async () => {
    const { emit, heard, gateway, connect, acquired } = await open();
    const other = await connect();
    emit('slow', 'a');
    await eventually(() => gateway.gate.arrived === 1);
    other.emit('slow', 'a');
    other.emit('slow', 'b');
    await eventually(() => gateway.gate.arrived === 2 && other.heard.length === 1);
    expect(other.heard).toEqual([{ event: 'exception', data: { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } } }]);
    gateway.gate.open();
    await eventually(() => heard.length === 1 && other.heard.length === 2);
    expect([heard[0], other.heard[1]]).toEqual(['a', 'b'].map((sku) => ({ event: 'done', data: `StockGateway.slow-${sku}-locks` })));
    expect(gateway.seen).toEqual(['a', 'b']);
    expect(acquired).toHaveLength(2);
  });
});

describe('contention on a locked @SubscribeMessage, with ws', () => {
  const SECRET = 'order-of-alice';
  class Plain {
    @SubscribeMessage('slow')
    @DistributedLock({ value: SECRET, waitTimeout: 0 })
    async slow() {
      return currentLease()?.key;
    }
  }

  /** What the client hears of it. */
  async function contend(type: new () => Plain, providers: object[] = []) {
    const { emit, heard, locks } = await serve({ providers: [type, ...(providers as never[])] });
    await locks.acquire(`${SECRET}-locks`, { keyTimeout: 60_000 });
    emit('slow', 'a');
    await eventually(() => heard.length > 0);
    expect(JSON.stringify(heard)).not.toContain(SECRET);
    return heard;
  }

  it('is an internal error without LockExceptionFilter', async () => {
    @WebSocketGateway()
    class Bare extends Plain {}
    expect(await contend(Bare)).toEqual([{ event: 'exception', data: { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } } }]);
  });

  it('is a code with LockExceptionFilter at the gateway; that of the app does not reach there', async () => {
    const data = expect.objectContaining(INTERNAL) as unknown;
    @WebSocketGateway()
    class Bare extends Plain {}
    expect(await contend(Bare, [{ provide: APP_FILTER, useClass: LockExceptionFilter }])).toEqual([{ event: 'exception', data }]);
    @WebSocketGateway()
    @UseFilters(LockExceptionFilter)
    class Filtered extends Plain {}
    expect(await contend(Filtered)).toEqual([{ event: 'exception', data: CODE }]);
  });

  it('is a code of the app’s own with a filter that makes a WsException of it', async () => {
    @WebSocketGateway()
    @UseFilters(BusyWsFilter)
    class Filtered extends Plain {}
    expect(await contend(Filtered)).toEqual([{ event: 'exception', data: { status: 'error', code: 'BUSY', message: 'Try again.' } }]);
  });
});
