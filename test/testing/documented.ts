// The tests of docs/testing.md. time.spec.ts runs each against a service that does right, and against those that it is there to find.
import { LockLostError, LockTimeoutError } from 'nestjs-distributed-lock';
import { passTime, type LockProbe } from 'nestjs-distributed-lock/testing';
import type { Database, Shelf, StockService } from './stock.js';

export interface Setting {
  stock: StockService;
  shelf: Shelf;
  database: Database;
  locks: LockProbe;
}

export const tests: Record<string, (setting: Setting) => Promise<void>> = {
  async 'under its lock'({ stock, shelf, locks }) {
    // #region testing-under
    let heldAtEnd: LockProbe['held'] = [];
    jest.spyOn(shelf, 'write').mockImplementation(async () => {
      await passTime(1_000); // a write that nobody awaits ends after the release
      heldAtEnd = locks.held;
    });
    await stock.reduce('apple');
    expect(heldAtEnd).toMatchObject([{ key: 'stock-apple-locks' }]);
    // #endregion
  },

  async 'commits under its lock'({ stock, database, locks }) {
    // #region testing-commit
    let heldAtCommit: LockProbe['held'] = [];
    jest.spyOn(database, 'commit').mockImplementation(async () => {
      heldAtCommit = locks.held;
    });
    await stock.reduce('apple');
    expect(heldAtCommit).toMatchObject([{ key: 'stock-apple-locks' }]);
    // #endregion
  },

  async 'one sale of a product at a time'({ stock, shelf, locks }) {
    // #region testing-narrow
    await Promise.all([stock.reduce('apple', 1), stock.reduce('apple', 2)]);
    expect(locks).not.toHaveOverlapped(/^stock-/);
    expect(await shelf.read('apple')).toBe(7);
    // #endregion
  },

  async 'two products at once'({ stock, locks }) {
    // #region testing-wide
    await Promise.all([stock.reduce('apple'), stock.reduce('pear')]);
    expect(locks).not.toHaveWaited(/^stock-/);
    // #endregion
  },

  async 'rejects when the key stays taken'({ stock, locks }) {
    // #region testing-taken
    locks.faults.timeOut('stock-apple-locks');
    const sold = expect(stock.reduce('apple')).rejects.toThrow(LockTimeoutError);
    await Promise.all([sold, passTime(30_000)]);
    // #endregion
  },

  async 'waits for another instance'({ stock, locks }) {
    // #region testing-elsewhere
    await locks.holdElsewhere('stock-apple-locks', { for: 10_000 });
    const [left] = await Promise.all([stock.reduce('apple'), passTime(10_000)]);
    expect(left).toBe(9);
    expect(locks).toHaveWaited('stock-apple-locks', { atLeast: 10_000 });
    // #endregion
  },

  async 'waits for so long and no longer'({ stock, locks }) {
    // #region testing-limit
    await locks.holdElsewhere('stock-apple-locks');
    const sold = expect(stock.reduce('apple')).rejects.toThrow(LockTimeoutError);
    await Promise.all([sold, passTime(60_000)]);
    expect(locks).toHaveWaited('stock-apple-locks', { atLeast: 30_000 });
    // #endregion
  },

  async 'stops when its lease is lost'({ stock, shelf, locks }) {
    // #region testing-signal
    const reported = stock.report().catch(() => undefined);
    await passTime(10_000);
    await locks.faults.lose('report-locks');
    const { pages } = shelf;
    await passTime(60_000);
    expect(shelf.pages).toBe(pages);
    // #endregion
    await reported;
  },

  async 'reports the loss'({ stock, locks }) {
    // #region testing-lost
    const outcome = stock.report().catch((error: unknown) => error);
    await passTime(10_000);
    await locks.faults.lose('report-locks');
    await passTime(60_000);
    expect(await outcome).toBeInstanceOf(LockLostError);
    // #endregion
  },

  async 'runs for an hour'({ stock, locks }) {
    // #region testing-hour
    const [outcome] = await Promise.all([stock.report(), passTime(3_600_000)]);
    expect(outcome).toBe('reported');
    expect(locks).not.toHaveLost('report-locks');
    // #endregion
  },

  async 'takes two locks in one order'({ stock, locks }) {
    // #region testing-order
    await stock.move('pear', 'apple');
    expect(locks).toHaveLockedInOrder(['shelf-apple', 'shelf-pear']);
    // #endregion
  },

  async 'releases what it takes'({ stock, locks }) {
    await stock.move('pear', 'apple');
    // #region testing-nothing
    expect(locks).toHoldNothing();
    // #endregion
  },

  async 'one run of a tick'({ stock, shelf }) {
    // #region testing-cron
    await stock.nightly();
    await passTime(1_000); // the clock of another instance is a second behind
    await stock.nightly();
    expect(shelf.pages).toBe(1);
    // #endregion
  },
};
