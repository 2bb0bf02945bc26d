import { setTimeout as pause } from 'node:timers/promises';
import { Locks, LockLostError, type LockLogger } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';

/** Blocks the event loop. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

function open() {
  const warnings: string[] = [];
  const lags: number[] = [];
  const logger: LockLogger = { warn: (message) => void warnings.push(message), error: (message) => void warnings.push(message) };
  const locks = new Locks(memoryStore(), { logger });
  locks.on('lag', ({ lag }) => lags.push(lag));
  return { locks, warnings, lags };
}

/** The block is measured from the last look, which was a fortieth of the lease before at most. */
const within = (least: number, keyTimeout: number) => (lag: number) => lag >= least && lag < least + keyTimeout / 40 + 100;

describe('an event loop that stands still', () => {
  it.each([
    ['under a body that goes on', true],
    ['under a body that blocks and returns', false],
  ])('is warned about with its length from a third of the lease on, %s', async (_what, goesOn) => {
    const { locks, warnings, lags } = open();
    await locks.using(
      'key',
      async () => {
        await pause(50);
        block(420);
        if (goesOn) await eventually(() => lags.length > 0);
      },
      { keyTimeout: 1200 },
    );
    expect(lags.map(within(420, 1200))).toEqual([true]);
    expect(warnings).toEqual([
      expect.stringMatching(/^The event loop stood still for \d+ ms, more than a third of the keyTimeout of 1200 ms of "key"/),
    ]);
    await locks.close();
  });

  it('is not warned about for less, however often', async () => {
    const { locks, warnings } = open();
    await locks.using(
      'key',
      async () => {
        for (let i = 0; i < 5; i++) {
          await pause(1);
          block(300);
        }
      },
      { keyTimeout: 2000 },
    );
    expect(warnings).toEqual([]);
    await locks.close();
  });

  it.each([
    ['the body goes on', true],
    ['the body only blocks and returns', false],
  ])('is named in the loss that it caused: %s', async (_what, goesOn) => {
    const { locks, warnings } = open();
    const call = locks.using(
      'key',
      async ({ signal }) => {
        block(250);
        if (goesOn) await eventually(() => signal.aborted);
      },
      { keyTimeout: 200 },
    );
    const error = await call.catch((reason: unknown) => reason);
    const why = 'not renewed within 200 ms, because the event loop stood still for 2\\d\\d ms';
    expect(error).toBeInstanceOf(LockLostError);
    const message = expect.stringMatching(`^The lease of "key" was lost: ${why}\\.$`);
    expect((error as Error).cause).toMatchObject({ message });
    expect(warnings).toContainEqual(expect.stringMatching(`^Lost "key" after 2\\d\\d ms: ${why}$`));
    await locks.close();
  });

  it('is not named in a loss by a store that does not answer', async () => {
    const store = memoryStore();
    const silent = { ...store, mutex: Object.create(store.mutex, { renew: { value: () => [new Promise(() => undefined)] } }) };
    const locks = new Locks(silent, { logger: false });
    const error = await locks
      .using('key', ({ signal }) => eventually(() => signal.aborted), { keyTimeout: 1_500 })
      .catch((reason: unknown) => reason);
    expect((error as Error).cause).toMatchObject({ message: 'The lease of "key" was lost: not renewed within 1,500 ms.' });
    await locks.close();
  });
});

describe('close()', () => {
  it('names bare leases that nobody released, once, and no running body', async () => {
    const { locks, warnings } = open();
    await locks.acquire('a');
    await locks.acquire('b');
    await (await locks.acquire('c')).release();
    await locks.close();
    expect(warnings).toEqual([
      'Closed while leases were held that nobody had released: "a", "b". Use `await using`, or release() in a finally.',
    ]);
  });
});
