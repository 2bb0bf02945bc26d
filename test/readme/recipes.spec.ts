// The recipes of docs/recipes.md, on two apps that share a Redis.
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, LockLostError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { askable } from '../support/askable.js';
import { rejection } from '../support/rejection.js';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import {
  Cache,
  Catalogue,
  ImportController,
  Mailer,
  Partner,
  PartnerToken,
  PriceFeed,
  Prices,
  Reindexer,
  SearchIndex,
  Smtp,
} from './recipes.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

/** Rejects as the functions of Node do: with an AbortError. */
const untilAborted = (signal: AbortSignal): Promise<unknown> => once(new EventEmitter(), 'end', { signal });

/** The second page is written until it is cancelled. */
class Pages extends SearchIndex {
  async *pages(): AsyncGenerator<string> {
    yield* await Promise.resolve(['first', 'second']);
  }
  async write(page: string, signal: AbortSignal): Promise<void> {
    if (page === 'second') await untilAborted(signal);
  }
}

const setting = useRedisOfEnv();
const prices: { price: string; token: number }[] = [];
let exchange: WebSocketServer;
let apps: INestApplication[];
let gate: Gate;
let signedIn: number;

beforeEach(async () => {
  [gate, signedIn] = [new Gate(), 0];
  exchange = new WebSocketServer({ port: 0 });
  await once(exchange, 'listening');
  const url = `ws://localhost:${(exchange.address() as AddressInfo).port}`;
  const store = (price: string, token: number) => Promise.resolve(void prices.push({ price, token }));
  const open = async () => {
    const testing = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store: redisStore({ url: setting.url }), logger: false })],
      controllers: [ImportController],
      providers: [
        ...[Mailer, PartnerToken, PriceFeed, Reindexer],
        { provide: Smtp, useValue: { send: (tenant: string, mail: string) => gate.pass().then(() => `${mail} of ${tenant}`) } },
        { provide: Cache, useValue: setting.redis },
        { provide: Partner, useValue: { signIn: () => gate.pass().then(() => `token ${++signedIn}`) } },
        { provide: Catalogue, useValue: { importAll: (tenant: string) => gate.pass().then(() => `all of ${tenant}`) } },
        { provide: SearchIndex, useClass: Pages },
        { provide: Prices, useValue: { url, store } },
      ],
    }).compile();
    return testing.createNestApplication().init();
  };
  apps = [await open()];
  await eventually(() => exchange.clients.size === 1); // the first app leads
  apps.push(await open());
});
afterEach(async () => {
  gate.open();
  for (const app of apps) await app.close();
  exchange.close();
});

it('a limit for each tenant: a third mail within the second waits, one of another tenant does not', async () => {
  const [one, two] = apps.map((app) => app.get(Mailer)) as [Mailer, Mailer];
  const start = performance.now();
  const mails = [one.send('a', '1'), two.send('a', '2'), one.send('a', '3'), two.send('b', '1')];
  await eventually(() => gate.arrived === 3);
  gate.open();
  expect(await Promise.all(mails)).toEqual(['1 of a', '2 of a', '3 of a', '1 of b']);
  expect(performance.now() - start).toBeGreaterThan(990);
});

it('a token is refreshed once, and every caller gets it', async () => {
  const tokens = Promise.all([...apps, ...apps].map((app) => app.get(PartnerToken).get()));
  await eventually(() => gate.arrived === 1);
  gate.open();
  expect(await tokens).toEqual(Array(4).fill('token 1'));
});

it('an import that is running refuses a second one of the same tenant', async () => {
  const [one, two] = apps.map((app) => app.get(ImportController)) as [ImportController, ImportController];
  const first = one.start('a');
  await eventually(() => gate.arrived === 1);
  await expect(two.start('a')).rejects.toMatchObject({ status: 409, message: 'An import of this tenant is running.' });
  const other = two.start('b');
  gate.open();
  expect(await Promise.all([first, other])).toEqual(['all of a', 'all of b']);
});

describe('work that an operator cancels', () => {
  const WHY = { by: 'jane', reason: 'wrong index' };
  beforeEach(() => apps.map((app) => askable(app.get(Locks))));

  it('ends on another instance, which shows how far it is, and its caller learns why', async () => {
    const [one, two] = apps.map((app) => app.get(Reindexer)) as [Reindexer, Reindexer];
    const ended = rejection(one.run());
    await eventually(async () => (await setting.redis.get('reindex-progress')) === '1');
    expect(await two.cancel(WHY.by, WHY.reason)).toMatchObject({ outcome: 'gave back' });
    const error = await ended;
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ revoked: WHY });
  });

  it('rejects with what it throws: an AbortError whose cause is the reason. Work that returns resolves', async () => {
    const [one, two] = apps.map((app) => app.get(Locks)) as [Locks, Locks];
    const aborted = rejection(one.using('aborted', ({ signal }) => untilAborted(signal)));
    const returned = one.using('returned', ({ signal }) => once(signal, 'abort').then(() => 'half'));
    for (const key of ['aborted', 'returned']) {
      await eventually(async () => (await two.inspect(key)).holders.length === 1);
      expect(await two.forceRelease(key, WHY)).toMatchObject({ outcome: 'gave back' });
    }
    expect(await aborted).toMatchObject({ name: 'AbortError', cause: { name: 'LockLostError', revoked: WHY } });
    expect(await returned).toBe('half');
  });
});

it('one instance has the connection; it opens it again, and the next leader opens its own', async () => {
  const only = async (...before: WebSocket[]): Promise<WebSocket> => {
    await eventually(() => exchange.clients.size === 1 && !before.some((socket) => exchange.clients.has(socket)));
    return [...exchange.clients][0]!;
  };
  const first = await only();
  first.send('7');
  await eventually(() => prices.length === 1);
  first.terminate();
  const second = await only(first);
  second.send('8');
  await eventually(() => prices.length === 2);
  expect(prices[1]).toEqual({ price: '8', token: prices[0]!.token });
  await apps[0]!.close();
  (await only(second)).send('9');
  await eventually(() => prices.length === 3);
  expect(prices[2]!.token).toBeGreaterThan(prices[1]!.token);
});
