import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { currentLease, DistributedLock, type Lease, LockLostError } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Gate } from './gate.js';

@Injectable()
class Inner {
  outlived = new Gate();
  keysOfChild: unknown[] = [];

  @DistributedLock({ value: 'inner', waitTimeout: 0 })
  async run() {
    return currentLease();
  }
  @DistributedLock({ value: 'outer', waitTimeout: 0 })
  async again() {
    return currentLease();
  }
  @DistributedLock({ value: 'inner', waitTimeout: 0 })
  async leaveChild() {
    void this.child();
    return currentLease();
  }
  private async child() {
    this.keysOfChild.push(currentLease()?.key);
    await this.outlived.pass();
    this.keysOfChild.push(currentLease()?.key);
    this.keysOfChild.push(await this.run().then((lease) => lease?.key));
  }
}

@Injectable()
class Outer {
  body: (inner: Inner, lease: Lease | undefined) => unknown = () => undefined;
  constructor(@Inject(Inner) private readonly inner: Inner) {}

  @DistributedLock({ value: 'outer', keyTimeout: 60_000, waitTimeout: 0 })
  async run() {
    return this.body(this.inner, currentLease());
  }
}

async function bootPair() {
  const booted = await boot({ providers: [Outer, Inner] });
  const run = <T>(body: (inner: Inner, lease: Lease | undefined) => T | Promise<T>): Promise<T> => {
    booted.get(Outer).body = body;
    return booted.get(Outer).run() as Promise<T>;
  };
  return { ...booted, run, inner: booted.get(Inner) };
}

describe('currentLease()', () => {
  it('is the lease of the method, with its key, owner, token, signal and time left', async () => {
    const { run, store } = await bootPair();
    await run(async (_inner, lease) => {
      expect(lease?.key).toBe('outer-locks');
      expect((await store.mutex.check({ key: 'outer-locks', owner: lease?.owner ?? '' })).state).toBe('held');
      expect(lease?.signal.aborted).toBe(false);
      expect(lease?.remaining()).toBeGreaterThan(30_000);
      expect(() => lease?.assertHeld()).not.toThrow();
    });
    const token = () => run((_inner, lease) => lease?.fencingToken ?? 0);
    expect(await token()).toBeLessThan(await token());
  });

  it('is there after awaits, timers and callbacks of the method, and undefined outside: before, after, and beside a call', async () => {
    const { run } = await bootPair();
    expect(currentLease()).toBeUndefined();
    const gate = new Gate();
    const call = run(async () => {
      await gate.pass();
      await pause(1);
      const later = await new Promise((resolve) => setImmediate(() => resolve(currentLease()?.key)));
      return [currentLease()?.key, later];
    });
    await eventually(() => gate.arrived === 1);
    expect(currentLease()).toBeUndefined();
    gate.open();
    expect(await call).toEqual(['outer-locks', 'outer-locks']);
    expect(currentLease()).toBeUndefined();
  });

  it('is the innermost lease in nested calls, and the outer one again behind them', async () => {
    const { run, acquired } = await bootPair();
    const keys = await run(async (inner) => {
      const nested = (await inner.run())?.key;
      return [nested, currentLease()?.key];
    });
    expect(keys).toEqual(['inner-locks', 'outer-locks']);
    expect(acquired).toEqual(['outer-locks', 'inner-locks']);
  });

  it('shares owner and token where a nested call of another service takes the same key again', async () => {
    const { run, acquired, isTaken } = await bootPair();
    await run(async (inner, lease) => {
      const again = await inner.again();
      expect(again).not.toBe(lease);
      expect([again?.owner, again?.fencingToken]).toEqual([lease?.owner, lease?.fencingToken]);
      expect(() => again?.assertHeld()).toThrow(LockLostError);
      expect(() => lease?.assertHeld()).not.toThrow();
      expect(await isTaken('outer-locks')).toBe(true);
    });
    expect(acquired).toEqual(['outer-locks']);
    expect(await isTaken('outer-locks')).toBe(false);
  });

  it('is not the ended lease for a child that outlives its call, which then waits like a stranger', async () => {
    const { run, inner, isTaken, acquired } = await bootPair();
    await run(async () => {
      await inner.leaveChild();
      expect(await isTaken('inner-locks')).toBe(false);
    });
    inner.outlived.open();
    await eventually(() => expect(inner.keysOfChild).toHaveLength(3));
    expect(inner.keysOfChild).toEqual(['inner-locks', undefined, 'inner-locks']);
    expect(acquired).toEqual(['outer-locks', 'inner-locks', 'inner-locks']);
  });

  it('is the outer lease for a child that outlives only the inner call', async () => {
    const { run, inner } = await bootPair();
    await run(async () => {
      await inner.leaveChild();
      inner.outlived.open();
      await eventually(() => expect(inner.keysOfChild).toHaveLength(3));
    });
    expect(inner.keysOfChild).toEqual(['inner-locks', 'outer-locks', 'inner-locks']);
  });
});
