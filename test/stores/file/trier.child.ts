// Tries to take a key once, and prints what came of it.
import { Locks, type StoreError } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';

const [directory = '', key = ''] = process.argv.slice(2);
const locks = new Locks(fileStore({ directory }), { logger: false });
const outcome = await locks.tryAcquire(key).then(
  (lease) => (lease ? 'granted' : 'taken'),
  (error: StoreError) => `${error.name}, transient: ${error.transient}: ${error.message}`,
);
console.log(outcome);
await locks.close();
