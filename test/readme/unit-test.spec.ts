import { Shelf } from './stand-ins/shelf.js';

// #region unit-test
import { Test } from '@nestjs/testing';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { StockService } from './stock.service.js';

it('sells an apple', async () => {
  const app = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store: memoryStore() })],
    providers: [StockService, Shelf],
  }).compile();
  await app.get(Shelf).write('apple', 3);
  expect(await app.get(StockService).reduce('apple', 1)).toBe(2);
  await app.close();
});
// #endregion
