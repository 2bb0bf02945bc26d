// Never run: `tsc` checks it, where each `@ts-expect-error` must stand above an error.
import { currentLease, Locks, type Lease, type Lock, type ReadWriteLock, type UsingOptions } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles if the promise is of exactly this type. */
function expectType<Expected>() {
  return <Actual>(_promise: Promise<Actual>, _same: Same<Actual, Expected>) => undefined;
}

const locks = new Locks(memoryStore());
const mutex = locks.mutex('key');
const five = async () => 5;
declare const choice: 'skip' | 'throw';
declare const options: UsingOptions;

const permit: Lock = locks.semaphore('a', { permits: 2 });
const { read, write }: ReadWriteLock = locks.readWriteLock('b');
export const kinds: Lock[] = [mutex, permit, read, write];

export const results = [
  expectType<number>()(locks.using('key', five), true),
  expectType<number>()(mutex.using(five), true),
  expectType<string>()(
    locks.using('key', async (lease) => lease.key),
    true,
  ),
  expectType<void>()(
    locks.using('key', async () => {}),
    true,
  ),
  expectType<number>()(locks.using('key', five, { onTimeout: 'throw', onLost: 'ignore' }), true),
  expectType<number | undefined>()(locks.using('key', five, { onTimeout: 'skip' }), true),
  expectType<number | undefined>()(locks.using('key', five, { onTimeout: choice }), true),
  expectType<unknown>()(locks.using('key', five, options), true),
  expectType<number | string>()(locks.using('key', five, { onTimeout: () => 'late' }), true),
  expectType<number | string>()(mutex.using(five, { onTimeout: async ({ key }) => key }), true),
  expectType<number>()(
    locks.using('key', five, {
      onTimeout: ({ error }) => {
        throw error;
      },
    }),
    true,
  ),

  expectType<Lease>()(locks.acquire('key', { waitTimeout: 2_000, signal: new AbortController().signal }), true),
  expectType<Lease | null>()(locks.tryAcquire('key'), true),
  expectType<void>()(locks.close(), true),
];

export async function lifetimes() {
  await using lease = await locks.acquire('key');
  await using maybe = await locks.tryAcquire('key');
  const { fencingToken, signal, owner, key } = lease;
  const token: number | null = fencingToken;
  const current: Lease | undefined = currentLease();
  // @ts-expect-error it may be null
  void maybe.key;
  // @ts-expect-error it may be undefined
  currentLease().assertHeld();
  return [token, signal.aborted, owner, key, current?.remaining()];
}

export const wrong = [
  // @ts-expect-error no work
  locks.using('key'),
  // @ts-expect-error a key is text
  locks.using(42, five),
  // @ts-expect-error unknown option
  locks.using('key', five, { ttl: 5 }),
  // @ts-expect-error a bare lease has no call to skip
  locks.acquire('key', { onTimeout: 'skip' }),
  // @ts-expect-error no work whose result it is about
  locks.acquire('key', { onLost: 'ignore' }),
  // @ts-expect-error no store
  new Locks({}),
  // @ts-expect-error a signal is for one call
  new Locks(memoryStore(), { defaults: { signal: new AbortController().signal } }),
];
