// The matchers of the kit with their types, as `nest new` sets them up: `npm run types` compiles this file.
import { Test } from '@nestjs/testing';
import { Locks } from 'nestjs-distributed-lock';
import { DistributedLockTestingModule, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';

expect.extend(lockMatchers);

it('has the matchers of the kit', async () => {
  const module = await Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()] }).compile();
  await module.init();
  const locks = module.get(LockProbe);
  await module.get(Locks).using('apple', () => undefined);
  expect(locks).toHaveLocked('apple', { times: 1 });
  expect(locks).not.toHaveOverlapped(/^apple/);
  await module.close();
});
