// The examples of docs/waiting.md, on two apps that share a store.
import '../support/virtual-time.js';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { BasketController, filter, NightShift, Work } from './waiting.js';

let gate: Gate;
let done: string[];
let waiting: number;
let apps: INestApplication[];
let shifts: NightShift[];
let locks: Locks;

beforeEach(async () => {
  [gate, done, waiting] = [new Gate(), [], 0];
  const store = memoryStore();
  const work: Work = { do: (what) => gate.pass().then(() => (done.push(what), what)) };
  const open = async () => {
    const testing = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store, logger: false })],
      controllers: [BasketController],
      providers: [NightShift, filter, { provide: Work, useValue: work }],
    }).compile();
    testing.get(Locks).on('waiting', () => waiting++);
    return testing.createNestApplication().init();
  };
  apps = [await open(), await open()];
  shifts = apps.map((app) => app.get(NightShift));
  locks = apps[0]!.get(Locks);
});
afterEach(async () => {
  gate.open();
  for (const app of apps) await app.close();
});

it('a request fails after two seconds where the key stays taken', async () => {
  await locks.acquire('basket-7-locks');
  const start = performance.now();
  await expect(apps[1]!.get(BasketController).order('7')).rejects.toThrow(LockTimeoutError);
  expect(Math.round(performance.now() - start)).toBe(2_000);
});

it('a job waits for one to two seconds, and then it is for the queue to try it again', async () => {
  await locks.acquire('stock-apple-locks');
  let waited = 0;
  apps[1]!.get(Locks).on('timeout', (event) => (waited = event.waited));
  await expect(shifts[1]!.book('apple')).rejects.toThrow(LockTimeoutError);
  expect(waited).toBeGreaterThanOrEqual(1_000);
  expect(waited).toBeLessThanOrEqual(2_000);
});

it('buyers of tickets are served in the order in which they came, on whichever instance', async () => {
  const buyers = ['Ada', 'Ben', 'Cleo', 'Dora', 'Emil'];
  const calls = [];
  for (const [index, buyer] of buyers.entries()) {
    calls.push(shifts[[0, 1, 1, 0, 1][index]!]!.sellTicket(buyer));
    await eventually(() => gate.arrived === 1 && waiting === index);
  }
  gate.open();
  await Promise.all(calls);
  expect(done).toEqual(buyers.map((buyer) => `ticket for ${buyer}`));
});
