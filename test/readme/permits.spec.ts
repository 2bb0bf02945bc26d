import type * as Program from './permits.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

describe('the semaphore of the documents', () => {
  let program: typeof Program;
  afterAll(() => program.locks.close());
  useRedisOfEnv(); // its server ends after the program

  beforeAll(async () => {
    program = await import('./permits.js');
  });

  it('lets three in at a time', async () => {
    const sent = await Promise.all(Array.from({ length: 20 }, (_, order) => program.send(`order ${order}`)));
    expect(sent.at(-1)).toBe('order 19 sent');
    expect(program.atWork).toMatchObject({ now: 0, most: 3, calls: 20 });
  });

  it('counts a bulk call as two', async () => {
    const single = program.locks.semaphore('partner-api', { permits: 3 });
    const held = [await single.acquire(), await single.acquire()];
    const waiting = program.sendAll(['one', 'two']);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(program.atWork.calls).toBe(20);
    await held[0]!.release();
    expect(await waiting).toBe('2 orders sent');
    await held[1]!.release();
  });
});
