import '../support/virtual-time.js';
import { Inject, Injectable } from '@nestjs/common';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  StorageDriver,
  Transactional as TypeOrmTransactional,
} from 'typeorm-transactional';
import { boot, type Booted } from '../nest/boot.js';
import { clsModule, ClsStockService } from './cls-stock.js';
import { key, lockAmong, LONG, aboveAndBelow, way, type Order } from './ways.js';

/** A database of its own in memory, with some apples; what it begins and ends is noted in `log`. */
async function openDatabase(log: string[]): Promise<DataSource> {
  const note = (query: string) => void (/^(BEGIN|COMMIT|ROLLBACK)/.test(query) && log.push(query.replace(' TRANSACTION', '')));
  const silent = () => undefined;
  const logger = { logQuery: note, logQueryError: silent, logQuerySlow: silent, logSchemaBuild: silent, logMigration: silent, log: silent };
  const database = await new DataSource({ type: 'sqljs', logger }).initialize();
  await database.query('CREATE TABLE stock (sku TEXT, units INTEGER)');
  await database.query("INSERT INTO stock VALUES ('apple', 20)");
  return database;
}

/** Reads, and writes back later: two at a time would lose an update. A negative number of units fails, after its write. */
async function take(client: Pick<DataSource, 'query'>, units: number): Promise<void> {
  const before = await applesIn(client);
  await new Promise(setImmediate);
  await client.query("UPDATE stock SET units = ? WHERE sku = 'apple'", [before - units]);
  if (units < 0) throw new Error('Nothing can be given back.');
}

async function applesIn(client: Pick<DataSource, 'query'>): Promise<number> {
  const [row] = await client.query<{ units: number }[]>("SELECT units FROM stock WHERE sku = 'apple'");
  return row?.units ?? Number.NaN;
}

/** Puts the lock's doings beside those of the database. */
function logLocks({ locks }: Booted, log: string[]): void {
  locks.on('acquired', () => log.push('acquired'));
  locks.on('released', () => log.push('released'));
}

/** An app whose method `take` is locked as `stock-locks`, runs in a transaction, and notes in `keys` its lease's key and whether there is a transaction. */
interface TransactionalApp {
  readonly booted: Booted;
  readonly database: DataSource;
  readonly keys: unknown[];
  take(units: number): Promise<number>;
  end(): Promise<void>;
}

/** What a lock and a transaction promise together, whatever makes the transaction. */
function provesTransactions(order: Order, open: (database: DataSource) => Promise<TransactionalApp>): void {
  let log: string[];
  let app: TransactionalApp;
  beforeEach(async () => {
    app = await open(await openDatabase((log = [])));
    logLocks(app.booted, log);
  });
  afterEach(() => app.end());

  it('is rolled back when the body fails, whose error comes through, and the lock is free', async () => {
    const { keys, booted, database } = app;
    await expect(app.take(-1)).rejects.toThrow('Nothing can be given back.');
    expect([keys, booted.acquired, await booted.isTaken('stock-locks')]).toEqual([['stock-locks', true], ['stock-locks'], false]);
    expect(await applesIn(database)).toBe(20);
    expect(log).toContain('ROLLBACK');
  });

  if (order === 'above') {
    it('is released after the commit, so that the next caller reads what was committed', async () => {
      await Promise.all(Array.from({ length: 6 }, () => app.take(1)));
      expect(await applesIn(app.database)).toBe(14);
      expect(log).toEqual(Array(6).fill(['acquired', 'BEGIN', 'COMMIT', 'released']).flat());
    });
  } else {
    it('is released before the commit: the next caller may read what was there before', async () => {
      expect(await app.take(1)).toBe(1);
      expect(log).toEqual(['BEGIN', 'acquired', 'released', 'COMMIT']);
      expect([app.keys, await applesIn(app.database)]).toEqual([['stock-locks', true], 19]);
    });
  }
}

aboveAndBelow('Transactions', '@Transactional of @nestjs-cls/transactional', (order) => {
  provesTransactions(order, async (database) => {
    const keys: unknown[] = [];
    @Injectable()
    class Stock {
      constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

      @lockAmong(order, { value: 'stock', ...LONG }, Transactional())
      async take(units: number) {
        keys.push(key(), this.host.isTransactionActive());
        await take(this.host.tx, units);
        return units;
      }
    }
    const booted = await boot({ imports: [clsModule(database)], providers: [Stock] });
    return { booted, database, keys, take: (units) => booted.get(Stock).take(units), end: () => database.destroy() };
  });
});

way('Transactions', 'a locked method that joins the transaction of its caller', () => {
  const inOrder = ['acquired', 'BEGIN', 'COMMIT', 'released'];
  it.each([
    ['is released before the commit: the lock belongs around the outer transaction', 'order', ['BEGIN', 'acquired', 'released', 'COMMIT']],
    ['enters the lock of its caller again, which lasts until after the commit', 'orderSafely', inOrder],
    ['has a transaction of its own where its caller has none', 'reduce', inOrder],
  ] as const)('%s', async (_what, method, expected) => {
    const log: string[] = [];
    const database = await openDatabase(log);
    const booted = await boot({ imports: [clsModule(database)], providers: [ClsStockService] });
    logLocks(booted, log);
    const calls = method === 'order' ? 1 : 3;
    await Promise.all(Array.from({ length: calls }, () => booted.get(ClsStockService)[method]('apple')));
    expect(await applesIn(database)).toBe(20 - calls);
    await database.destroy();
    expect(log).toEqual(Array(calls).fill(expected).flat());
  });
});

beforeAll(() => initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE }));

aboveAndBelow('Transactions', '@Transactional of typeorm-transactional', (order) => {
  provesTransactions(order, async (opened) => {
    const keys: unknown[] = [];
    @Injectable()
    class Stock {
      constructor(@Inject(DataSource) private readonly database: DataSource) {}

      @lockAmong(order, { value: 'stock', ...LONG }, TypeOrmTransactional())
      async take(units: number) {
        keys.push(key(), this.database.manager.queryRunner?.isTransactionActive);
        await take(this.database, units);
        return units;
      }
    }
    const database = addTransactionalDataSource(opened);
    const booted = await boot({ providers: [Stock, { provide: DataSource, useValue: database }] });
    return {
      booted,
      database,
      keys,
      take: (units) => booted.get(Stock).take(units),
      async end() {
        deleteDataSourceByName('default');
        await database.destroy();
      },
    };
  });
});
