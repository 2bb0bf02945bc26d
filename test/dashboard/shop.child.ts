// A process that holds a key, and waits for it as often as it is asked to.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

const [connection = ''] = process.argv.slice(2);
const store = redisStore({ options: JSON.parse(connection) as object });
const locks = new Locks(store, { logger: false, defaults: { keyTimeout: 60_000, waitTimeout: 60_000 } });
process.on('message', ({ key }: { key: string }) => {
  void locks.acquire(key, { label: 'ShopService.sell' }).then(({ owner }) => tellParent({ type: 'holds', owner }));
});
await store.bus!.open(() => undefined);
tellParent({ type: 'ready' });
