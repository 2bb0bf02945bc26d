// The recipes of docs/recipes.md, on two apps that share a Redis.
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { Cache, Catalogue, ImportController, Mailer, Partner, PartnerToken, PriceFeed, Prices, Smtp } from './recipes.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

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
        ...[Mailer, PartnerToken, PriceFeed],
        { provide: Smtp, useValue: { send: (tenant: string, mail: string) => gate.pass().then(() => `${mail} of ${tenant}`) } },
        { provide: Cache, useValue: setting.redis },
        { provide: Partner, useValue: { signIn: () => gate.pass().then(() => `token ${++signedIn}`) } },
        { provide: Catalogue, useValue: { importAll: (tenant: string) => gate.pass().then(() => `all of ${tenant}`) } },
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
