import { UseFilters } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { MessageBody, SubscribeMessage, WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import type { Server } from 'socket.io';
import { io, type Socket } from 'socket.io-client';
import { currentLease, DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { lockAmong, place } from './place.js';
import { BusyWsFilter, gatewayOf, serveSockets } from './socket-io-gateway.js';

const INTERNAL = { status: 'error', message: 'Internal server error' };
const CODE = { status: 'error', message: 'Another request is working on this. Try again.', code: 'LOCK_TIMEOUT' };

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.disconnect();
});

async function serve(metadata: Parameters<typeof serveSockets>[0]) {
  const served = await serveSockets(metadata, (app) => app.useWebSocketAdapter(new IoAdapter(app)));
  const connect = async (namespace = '') => {
    const socket = io(`${served.url}${namespace}`, { transports: ['websocket'], forceNew: true, reconnection: false });
    sockets.push(socket);
    const heard: [string, unknown][] = [];
    socket.onAny((event: string, data: unknown) => heard.push([event, data]));
    await eventually(() => socket.connected);
    return { socket, heard };
  };
  return { ...served, ...(await connect()), connect };
}

place('WebSockets', '@SubscribeMessage with socket.io', (order) => {
  const open = async () => {
    const Gateway = gatewayOf(order);
    const served = await serve({ providers: [Gateway] });
    return { ...served, gateway: served.get(Gateway) };
  };

  it('answers under its lock, taken once, by what its pipe made of the body, and with its socket', async () => {
    const { socket, heard, acquired, gateway } = await open();
    socket.emit('reduce', 'apple');
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([['reduced', { sku: 'APPLE', key: 'StockGateway.reduce-APPLE-locks' }]]);
    expect(acquired).toEqual(['StockGateway.reduce-APPLE-locks']);
    expect([...gateway.clients].map((client) => (client as { id: string }).id)).toEqual([socket.id]);
  });

  it('acknowledges with what it returns', async () => {
    const { socket, acquired } = await open();
    expect(await socket.timeout(5_000).emitWithAck('ack', {})).toEqual({ key: 'StockGateway.ack-locks' });
    expect(acquired).toEqual(['StockGateway.ack-locks']);
  });

  it('sends all of an Observable, under one lock', async () => {
    const { socket, heard, acquired, isTaken } = await open();
    socket.emit('count', [1, 2, 3]);
    await eventually(() => heard.length === 3);
    expect(heard).toEqual([1, 2, 3].map((unit) => ['unit', { unit, key: 'StockGateway.count-locks' }]));
    expect(acquired).toEqual(['StockGateway.count-locks']);
    await eventually(async () => !(await isTaken('StockGateway.count-locks')));
  });

  it('passes its WsException on, and gives the lock back', async () => {
    const { socket, heard, isTaken } = await open();
    socket.emit('refuse', {});
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([['exception', expect.objectContaining({ message: 'sold out under StockGateway.refuse-locks' })]]);
    expect(await isTaken('StockGateway.refuse-locks')).toBe(false);
  });

  it('is held by one message for a key, and by messages for other keys beside it', async () => {
    const { socket, heard, gateway, connect, acquired } = await open();
    const other = await connect();
    socket.emit('slow', 'a');
    await eventually(() => gateway.gate.arrived === 1);
    other.socket.emit('slow', 'a');
    other.socket.emit('slow', 'b');
    await eventually(() => gateway.gate.arrived === 2 && other.heard.length === 1);
    expect(other.heard).toEqual([['exception', { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } }]]);
    gateway.gate.open();
    await eventually(() => heard.length === 1 && other.heard.length === 2);
    expect([heard[0], other.heard[1]]).toEqual(['a', 'b'].map((sku) => ['done', `StockGateway.slow-${sku}-locks`]));
    expect(gateway.seen).toEqual(['a', 'b']);
    expect(acquired).toHaveLength(2);
  });

  it('is locked in a namespace, and the gateway has its server', async () => {
    @WebSocketGateway({ namespace: 'shop' })
    class ShopGateway {
      @WebSocketServer() server!: Server;
      @lockAmong(order, { keyTimeout: 60_000 }, SubscribeMessage('cry'))
      async cry(@MessageBody() text: string) {
        this.server.emit('cried', `${text} ${currentLease()?.key}`);
      }
    }
    const { connect, acquired } = await serve({ providers: [ShopGateway] });
    const { socket, heard } = await connect('/shop');
    socket.emit('cry', 'apples');
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([['cried', 'apples ShopGateway.cry-locks']]);
    expect(acquired).toEqual(['ShopGateway.cry-locks']);
  });
});

describe('contention on a locked @SubscribeMessage, with socket.io', () => {
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
    const { socket, heard, locks } = await serve({ providers: [type, ...(providers as never[])] });
    await locks.acquire(`${SECRET}-locks`, { keyTimeout: 60_000 });
    const acknowledged = jest.fn();
    socket.emit('slow', 'a', acknowledged);
    await eventually(() => heard.length > 0);
    expect(JSON.stringify(heard)).not.toContain(SECRET);
    expect(acknowledged).not.toHaveBeenCalled();
    return heard;
  }

  it('is an internal error without LockExceptionFilter, and no acknowledgement', async () => {
    @WebSocketGateway()
    class Bare extends Plain {}
    expect(await contend(Bare)).toEqual([['exception', { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } }]]);
  });

  it('is a code with LockExceptionFilter at the gateway; that of the app does not reach there', async () => {
    const answer = [['exception', expect.objectContaining(INTERNAL)]];
    @WebSocketGateway()
    class Bare extends Plain {}
    expect(await contend(Bare, [{ provide: APP_FILTER, useClass: LockExceptionFilter }])).toEqual(answer);
    @WebSocketGateway()
    @UseFilters(LockExceptionFilter)
    class Filtered extends Plain {}
    expect(await contend(Filtered)).toEqual([['exception', CODE]]);
  });

  it('is a code of the app’s own with a filter that makes a WsException of it', async () => {
    @WebSocketGateway()
    @UseFilters(BusyWsFilter)
    class Filtered extends Plain {}
    expect(await contend(Filtered)).toEqual([['exception', { status: 'error', code: 'BUSY', message: 'Try again.' }]]);
  });
});
