import { passTime } from '../support/virtual-time.js';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

function lockedAndHeard() {
  const lines: string[] = [];
  const note = (line: string): void => void lines.push(line);
  const locks = new Locks(memoryStore(), { logger: { warn: note, error: note } });
  locks.on('lag', () => lines.push('lag'));
  return { locks, lines };
}

it('a method that goes on after its maxHold tells of no lag', async () => {
  const { locks, lines } = lockedAndHeard();
  const work = locks.using('key', () => passTime(5_000), { keyTimeout: 1_000, maxHold: 2_000, onLost: 'ignore' });
  await work;
  expect(lines).toEqual([expect.stringMatching(/^Lost "key" after .*: its maxHold is over/)]);
});

it('the error of a lease whose maxHold is over says so', async () => {
  const { locks } = lockedAndHeard();
  const lease = await locks.acquire('key', { keyTimeout: 1_000, maxHold: 2_000 });
  await passTime(3_000);
  expect(() => lease.assertHeld()).toThrow(/maxHold/);
  await expect(locks.using('other', () => passTime(2_900), { keyTimeout: 1_000, maxHold: 2_000 })).rejects.toThrow(/maxHold/);
});

it('a method that goes on after the end of a fixed lease tells of no lag', async () => {
  const { locks, lines } = lockedAndHeard();
  await locks.using('key', () => passTime(5_000), { keyTimeout: 1_000, renew: false, onLost: 'ignore' });
  expect(lines).toEqual([expect.stringContaining('are over')]);
});
