// Asks for keys while the disk is full, and then once more.
import { appendFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Locks, type StoreError } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';

const [directory = ''] = process.argv.slice(2);
const filler = join(directory, 'filler');
const locks = new Locks(fileStore({ directory }), { logger: false });
const outcomeOf = (key: string): Promise<string> =>
  locks.tryAcquire(key).then(
    (lease) => (lease ? 'granted' : 'taken'),
    (error: StoreError) => `${error.name}, transient: ${error.transient}`,
  );

await locks.acquire('held');
try {
  for (;;) appendFileSync(filler, Buffer.alloc(4096));
} catch {
  // It is full.
}
const outcomes = [await outcomeOf('new'), await outcomeOf('new'), await outcomeOf('other')];
const drafts = readdirSync(join(directory, 'drafts'));
rmSync(filler);
const after = await outcomeOf('new');
console.log(JSON.stringify({ outcomes, drafts, after }));
await locks.close();
