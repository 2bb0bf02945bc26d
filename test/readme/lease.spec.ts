import type { Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { StocktakeService, TillService } from './lease.js';
import { Gate } from '../support/gate.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { SqlTable } from './stand-ins/sql-table.js';

const setting = useRedisOfEnv();
let app: TestingModule;
afterEach(() => app.close());

async function appWith(...providers: Provider[]): Promise<TestingModule> {
  const store = redisStore({ url: setting.url, requestTimeout: 500 });
  const imports = [DistributedLockModule.forRoot({ store, logger: false, defaults: { keyTimeout: 1000 } })];
  return (app = await Test.createTestingModule({ imports, providers }).compile());
}

/** Deletes the lock's key, as an eviction or a failover would. */
async function loseKey(key: string): Promise<void> {
  await eventually(async () => expect(await setting.redis.del(key)).toBe(1));
}

it('the signal aborts when the lease is lost, and the fencing token refuses the late write', async () => {
  const table = new SqlTable([{ sku: 'apple', units: 7, fence: 0 }]);
  const stock = (await appWith(StocktakeService, { provide: SqlTable, useValue: table })).get(StocktakeService);

  const first = expect(stock.recount('apple')).rejects.toThrow('stale');
  await eventually(() => stock.counting.arrived === 1);
  await loseKey('stocktake-apple-locks');
  await eventually(() => stock.signals[0]!.aborted);
  const second = stock.recount('apple');
  await eventually(() => stock.counting.arrived === 2);
  stock.counting.admit(1);
  await expect(second).resolves.toBe(5);
  const written = { ...table.rows[0] };
  expect(written).toMatchObject({ units: 5, fence: expect.any(Number) });
  stock.counting.open();
  await first;
  expect(table.rows).toEqual([written]);
});

describe('the four kinds of error', () => {
  async function tillWith(work: () => Promise<number>): Promise<TillService> {
    const locks = (await appWith()).get(Locks);
    return new TillService({ reduce: () => locks.using('stock', work, { waitTimeout: 0 }) });
  }

  it('contention, an error of the method itself, and a result', async () => {
    let outcome: () => Promise<number> = async () => 4;
    const till = await tillWith(() => outcome());
    await expect(till.buy('apple')).resolves.toBe('4 left');
    const own = new Error('Sold out');
    outcome = () => Promise.reject(own);
    await expect(till.buy('apple')).rejects.toBe(own);
    await setting.redis.set('stock', 'another process', 'PX', 30_000);
    await expect(till.buy('apple')).resolves.toBe('busy');
  });

  it('a loss, with the result', async () => {
    const gate = new Gate();
    const till = await tillWith(() => gate.pass().then(() => 4));
    const bought = till.buy('apple');
    await loseKey('stock');
    gate.open();
    await expect(bought).resolves.toBe('check: 4 left');
  });

  it('an outage', async () => {
    const till = await tillWith(async () => 4);
    await setting.server.kill();
    await expect(till.buy('apple')).resolves.toBe('closed');
    await setting.server.restart();
    await eventually(() => setting.redis.ping());
  });
});
