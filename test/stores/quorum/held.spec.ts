import { mayTake } from '../../support/virtual-time.js';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { idle } from '../../../lib/core/util/clock.js';

mayTake(60_000);

it('a lease that ends without a release is forgotten, but not while it is renewed', async () => {
  const { mutex } = quorumStore([memoryStore(), memoryStore(), memoryStore()], { quarantine: 0 });
  const { leases } = (mutex as unknown as { held: { leases: Map<string, unknown> } }).held;
  const request = { key: 'key', ttl: 15_000, tokens: 1, queue: false };
  expect(await mutex.acquire({ ...request, owner: 'a' })).toMatchObject({ granted: true });
  await idle(12_000);
  expect(await mutex.renew([{ ...request, owner: 'a' }])[0]).toBe('renewed');
  await idle(10_000);
  expect(leases.size).toBe(1);
  await idle(20_000);
  expect(leases.size).toBe(0);
  expect(await mutex.acquire({ ...request, owner: 'b' })).toMatchObject({ granted: true });
  expect(leases.size).toBe(1);
  await mutex.release({ key: 'key', owner: 'b', keepFor: 0 });
  expect(leases.size).toBe(0);
});
