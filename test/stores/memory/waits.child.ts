// Waits without a limit, and does nothing else: it must not end before it has had its turn.
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { tellParent } from '../../support/child.js';

const locks = new Locks(memoryStore(), { logger: false });
await locks.acquire('key', { renew: false, keyTimeout: 100 });
await locks.using('key', () => tellParent({ type: 'ran' }), { waitTimeout: Infinity });
