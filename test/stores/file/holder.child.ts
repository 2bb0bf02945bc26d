// Takes a key and holds it until it is killed.
import { Locks, type AcquireOptions } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { tellParent } from '../../support/child.js';

export type HolderMessage = { type: 'held' };

const [directory = '', key = '', options = '{}'] = process.argv.slice(2);
const locks = new Locks(fileStore({ directory }), { logger: false });
const lease = await locks.acquire(key, JSON.parse(options) as AcquireOptions);
tellParent({ type: 'held', owner: lease.owner });
setInterval(() => undefined, 60_000);
