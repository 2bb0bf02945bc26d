// Waits without a limit, and does nothing else: it must not end before its work has run.
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { tellParent } from '../../support/child.js';

const locks = new Locks(memoryStore(), { logger: false });
// eslint-disable-next-line tests/no-short-lease -- its end is what the next caller waits for
await locks.acquire('key', { renew: false, keyTimeout: 100 });
await locks.using('key', () => tellParent({ type: 'ran' }), { waitTimeout: Infinity });
