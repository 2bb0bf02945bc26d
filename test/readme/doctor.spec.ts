import { Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { examine } from './doctor.js';

describe('docs/doctor.md', () => {
  it('says what the store is fit for', async () => {
    const locks = new Locks(memoryStore());
    expect(await examine(locks)).toEqual([
      'Efficiency: yes. Correctness: yes, and check the fencing token if you can.',
      expect.stringMatching(/^keyTimeout of 1\d{3} ms or more$/),
    ]);
    await locks.close();
  });
});
