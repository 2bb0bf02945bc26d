// Holds a key, says so by a file, and prints why it has lost the key.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LockLostError, Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';

const [directory = '', key = ''] = process.argv.slice(2);
const locks = new Locks(fileStore({ directory }), { logger: false });
const { signal } = await locks.acquire(key, { keyTimeout: 60_000 });
const lives = setInterval(() => undefined, 1_000);
writeFileSync(join(directory, 'held'), '');
await once(signal, 'abort');
clearInterval(lives);
console.log((signal.reason as LockLostError).message);
await locks.close();
