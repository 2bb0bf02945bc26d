import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { currentLease, Lease, LockLostError } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { Gate } from './gate.js';
import { bootKind, EXCLUSIVE, KINDS, type Kind } from './kinds.js';

function servicesWith({ lock }: Kind) {
  @Injectable()
  class Inner {
    outlived = new Gate();
    keysOfChild: unknown[] = [];

    @lock({ value: 'inner', waitTimeout: 0 })
    async run() {
      return currentLease();
    }
    @lock({ value: 'outer', waitTimeout: 0 })
    async again() {
      return currentLease();
    }
    @lock({ value: 'inner', waitTimeout: 0 })
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

    @lock({ value: 'outer', keyTimeout: 60_000, waitTimeout: 0 })
    async run() {
      return this.body(this.inner, currentLease());
    }
  }
  return { Inner, Outer };
}

async function bootPair(kind: Kind) {
  const { Inner, Outer } = servicesWith(kind);
  const booted = await bootKind(kind, { providers: [Outer, Inner] });
  const run = <T>(body: (inner: InstanceType<typeof Inner>, lease: Lease | undefined) => T | Promise<T>): Promise<T> => {
    booted.get(Outer).body = body;
    return booted.get(Outer).run() as Promise<T>;
  };
  return { ...booted, run, inner: booted.get(Inner) };
}

describe.each(KINDS)('currentLease() under $name', (kind) => {
  it('is the lease of the method, with its key, owner, token, signal and time left', async () => {
    const { run, store } = await bootPair(kind);
    await run(async (_inner, lease) => {
      expect(lease?.key).toBe('outer-locks');
      expect((await kind.driverOf(store).check({ key: 'outer-locks', owner: lease?.owner ?? '' })).state).toBe('held');
      expect(Number.isSafeInteger(lease?.fencingToken)).toBe(true);
      expect(lease?.signal.aborted).toBe(false);
      expect(lease?.remaining()).toBeGreaterThan(30_000);
      expect(() => lease?.assertHeld()).not.toThrow();
    });
  });

  it('is there after awaits, timers and callbacks of the method', async () => {
    const { run } = await bootPair(kind);
    const keys = await run(async () => {
      await pause(1);
      const later = await new Promise((resolve) => setImmediate(() => resolve(currentLease()?.key)));
      return [currentLease()?.key, later];
    });
    expect(keys).toEqual(['outer-locks', 'outer-locks']);
  });

  it('is undefined outside: before, after, and beside a call', async () => {
    const { run } = await bootPair(kind);
    expect(currentLease()).toBeUndefined();
    const gate = new Gate();
    const call = run(() => gate.pass());
    await eventually(() => gate.arrived === 1);
    expect(currentLease()).toBeUndefined();
    gate.open();
    await call;
    expect(currentLease()).toBeUndefined();
  });

  it('is the innermost lease in nested calls, and the outer one again behind them', async () => {
    const { run, acquired } = await bootPair(kind);
    const keys = await run(async (inner) => {
      const nested = (await inner.run())?.key;
      return [nested, currentLease()?.key];
    });
    expect(keys).toEqual(['inner-locks', 'outer-locks']);
    expect(acquired).toEqual(['outer-locks', 'inner-locks']);
  });

  it('shares owner and token where a nested call of another service takes the same key again', async () => {
    const { run, acquired, isTaken } = await bootPair(kind);
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

  it('no longer counts as held when the method has ended', async () => {
    const { run } = await bootPair(kind);
    const lease = await run((_inner, current) => current);
    expect(() => lease?.assertHeld()).toThrow(LockLostError);
    expect([lease?.remaining(), await lease?.release()]).toEqual([0, true]);
  });

  it('tells a method whose lease was lost, and stops a nested call of the same key', async () => {
    const { run, steal } = await bootPair(kind);
    const nested = await run(async (inner, lease) => {
      await steal(lease);
      await lease?.renew().catch(() => undefined);
      expect(lease?.signal.aborted).toBe(true);
      expect(lease?.signal.reason).toBeInstanceOf(LockLostError);
      expect(() => lease?.assertHeld()).toThrow(LockLostError);
      return inner.again().catch((error: unknown) => error);
    }).catch((error: LockLostError) => error.result);
    expect(nested).toBeInstanceOf(LockLostError);
  });

  it('is not the ended lease for a child that outlives its call, which then waits like a stranger', async () => {
    const { run, inner, isTaken, acquired } = await bootPair(kind);
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
    const { run, inner } = await bootPair(kind);
    await run(async () => {
      await inner.leaveChild();
      inner.outlived.open();
      await eventually(() => expect(inner.keysOfChild).toHaveLength(3));
    });
    expect(inner.keysOfChild).toEqual(['inner-locks', 'outer-locks', 'inner-locks']);
  });
});

describe.each(EXCLUSIVE)('currentLease() under $name', (kind) => {
  it('has a larger token from call to call', async () => {
    const { run } = await bootPair(kind);
    const token = () => run((_inner, lease) => lease?.fencingToken ?? 0);
    const [first, second, third] = [await token(), await token(), await token()];
    expect(second).toBeGreaterThan(first);
    expect(third).toBeGreaterThan(second);
  });
});
