import { eventually } from '../support/eventually.js';
import type * as Program from './read-write.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

describe('the read/write lock of the documents', () => {
  let program: typeof Program;
  afterAll(() => program.locks.close());
  useRedisOfEnv(); // its server ends after the program

  beforeAll(async () => {
    program = await import('./read-write.js');
  });

  it('shows readers all new prices or none', async () => {
    const raising = program.raise(10);
    let isOver = false;
    void raising.finally(() => (isOver = true));
    const totals: number[] = [];
    while (!isOver) totals.push(await program.total(['apple', 'pear']));
    totals.push(await program.total(['apple', 'pear']));
    expect(totals.filter((total) => total !== 300 && total !== 330)).toEqual([]);
    expect(totals.at(-1)).toBe(330);
  });

  it('lets others read while a writer publishes what it wrote, and nobody write', async () => {
    const setting = program.setPrice('pear', 250);
    const { read, write } = program.locks.readWriteLock('prices');
    await eventually(() => program.press.isWaiting);
    await using reader = await read.tryAcquire();
    expect(reader).not.toBeNull();
    expect(await write.tryAcquire()).toBeNull();
    program.press.go();
    await setting;
    expect(program.press.published).toEqual([expect.stringMatching(/ 250$/)]);
    expect(await program.total(['pear'])).toBe(250);
  });
});
