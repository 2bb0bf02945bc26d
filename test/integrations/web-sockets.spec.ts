import { UseFilters, type INestApplication } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import { DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';
import { boot, listen } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { key, aboveAndBelow, type Order } from './ways.js';
import { BusyWsFilter, gatewayOf } from './web-socket-gateway.js';

interface Client {
  /** What the server has sent; of ws without an event, under the name `''`. */
  readonly heard: [event: string, data: unknown][];
  emit(event: string, data: unknown, acknowledge?: (answer: unknown) => void): void;
  readonly socket: Socket | WebSocket;
}

interface Transport {
  adapt(app: INestApplication): void;
  connect(url: string): Promise<Client>;
}

const closing: (() => unknown)[] = [];
afterEach(() => closing.splice(0).forEach((close) => close()));

const socketIo: Transport = {
  adapt: (app) => app.useWebSocketAdapter(new IoAdapter(app)),
  async connect(url) {
    const socket = io(url, { transports: ['websocket'], forceNew: true, reconnection: false });
    closing.push(() => socket.disconnect());
    const heard: Client['heard'] = [];
    socket.onAny((event: string, data: unknown) => heard.push([event, data]));
    await eventually(() => socket.connected);
    return { socket, heard, emit: (event, data, ...rest) => void socket.emit(event, data, ...rest) };
  },
};
const ws: Transport = {
  adapt: (app) => app.useWebSocketAdapter(new WsAdapter(app)),
  async connect(url) {
    const socket = new WebSocket(url.replace('http', 'ws'));
    closing.push(() => socket.terminate());
    const heard: Client['heard'] = [];
    socket.on('message', (frame: Buffer) => {
      const { event, data, ...rest } = JSON.parse(frame.toString()) as { event?: string; data?: unknown };
      heard.push(event === undefined ? ['', rest] : [event, data]);
    });
    await once(socket, 'open');
    return { socket, heard, emit: (event, data) => socket.send(JSON.stringify({ event, data })) };
  },
};

async function serve({ adapt, connect }: Transport, metadata: Parameters<typeof boot>[0]) {
  const booted = await boot(metadata, {}, adapt);
  const url = await listen(booted.app);
  return { ...booted, ...(await connect(url)), connect: () => connect(url) };
}

const INTERNAL = { status: 'error', message: 'Internal server error' };
const CODE = { status: 'error', message: 'Another request is working on this. Try again.', code: 'LOCK_TIMEOUT' };

/** What holds for a locked `@SubscribeMessage` over any transport. */
function provesMessages(order: Order, transport: Transport): void {
  const open = async () => {
    const Gateway = gatewayOf(order);
    const served = await serve(transport, { providers: [Gateway] });
    return { ...served, gateway: served.get(Gateway) };
  };

  it('answers under its lock, taken once, by what its pipe made of the body, and with its socket', async () => {
    const { socket, emit, heard, acquired, gateway } = await open();
    emit('reduce', 'apple');
    await eventually(() => heard.length === 1);
    expect(heard).toEqual([['reduced', { sku: 'APPLE', key: 'StockGateway.reduce-APPLE-locks' }]]);
    const [client] = [...gateway.clients] as { id?: string; readyState?: number }[];
    if ('id' in socket) expect(client?.id).toBe(socket.id);
    else expect(client?.readyState).toBe(WebSocket.OPEN);
    emit('ack', {}, (answer) => heard.push(['', answer]));
    await eventually(() => heard.length === 2);
    expect(heard[1]).toEqual(['', { key: 'StockGateway.ack-locks' }]);
    expect(acquired).toEqual(['StockGateway.reduce-APPLE-locks', 'StockGateway.ack-locks']);
  });

  it('sends all of an Observable under one lock, and passes its WsException on, and releases the lock', async () => {
    const { emit, heard, acquired, isTaken } = await open();
    emit('count', [1, 2, 3]);
    await eventually(() => heard.length === 3);
    expect(heard).toEqual([1, 2, 3].map((unit) => ['unit', { unit, key: 'StockGateway.count-locks' }]));
    emit('refuse', {});
    await eventually(() => heard.length === 4);
    expect(heard[3]).toEqual(['exception', expect.objectContaining({ message: 'sold out under StockGateway.refuse-locks' })]);
    expect(acquired).toEqual(['StockGateway.count-locks', 'StockGateway.refuse-locks']);
    await eventually(async () => (await Promise.all(acquired.map(isTaken))).every((taken) => !taken));
  });

  it('is held by one message for a key, and by messages for other keys beside it', async () => {
    const { emit, heard, gateway, connect, acquired } = await open();
    const other = await connect();
    emit('slow', 'a');
    await eventually(() => gateway.gate.arrived === 1);
    other.emit('slow', 'a');
    other.emit('slow', 'b');
    await eventually(() => gateway.gate.arrived === 2 && other.heard.length === 1);
    expect(other.heard).toEqual([['exception', { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } }]]);
    gateway.gate.open();
    await eventually(() => heard.length === 1 && other.heard.length === 2);
    expect([heard[0], other.heard[1]]).toEqual(['a', 'b'].map((sku) => ['done', `StockGateway.slow-${sku}-locks`]));
    expect(gateway.seen).toEqual(['a', 'b']);
    expect(acquired).toHaveLength(2);
  });
}

aboveAndBelow('WebSockets', '@SubscribeMessage with socket.io', (order) => provesMessages(order, socketIo));

aboveAndBelow('WebSockets', '@SubscribeMessage with ws', (order) => provesMessages(order, ws));

describe.each([
  ['socket.io', socketIo],
  ['ws', ws],
])('contention on a locked @SubscribeMessage, with %s', (_name, transport) => {
  const SECRET = 'order-of-alice';
  class Plain {
    @SubscribeMessage('slow')
    @DistributedLock({ value: SECRET, waitTimeout: 0 })
    async slow() {
      return key();
    }
  }
  @WebSocketGateway()
  class Bare extends Plain {}
  @WebSocketGateway()
  @UseFilters(LockExceptionFilter)
  class Filtered extends Plain {}
  @WebSocketGateway()
  @UseFilters(BusyWsFilter)
  class Busy extends Plain {}
  const ofTheApp = { provide: APP_FILTER, useClass: LockExceptionFilter };
  const internal = { ...INTERNAL, cause: { pattern: 'slow', data: 'a' } };

  it.each<[string, object[], object]>([
    ['an internal error without LockExceptionFilter', [Bare], internal],
    ['an internal error with LockExceptionFilter at the app, which does not reach there', [Bare, ofTheApp], internal],
    ['a code with LockExceptionFilter at the gateway', [Filtered], CODE],
    ['a code of the app’s own with a filter of its own', [Busy], { status: 'error', code: 'BUSY', message: 'Try again.' }],
  ])('is %s, and no acknowledgement', async (_what, providers, data) => {
    const { emit, heard, locks } = await serve(transport, { providers: providers as never[] });
    await locks.acquire(`${SECRET}-locks`, { keyTimeout: 60_000 });
    const acknowledged = jest.fn();
    emit('slow', 'a', acknowledged);
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([['exception', data]]);
    expect(JSON.stringify(heard)).not.toContain(SECRET);
    expect(acknowledged).not.toHaveBeenCalled();
  });
});
