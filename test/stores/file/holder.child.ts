// Takes a key and holds it until it is killed; hands it over when its parent asks for that.
import { Locks, type AcquireOptions } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { tellParent } from '../../support/child.js';

export type HolderMessage = { type: 'held' } | { type: 'handedOver'; ticket: string };

const [directory = '', key = '', options = '{}'] = process.argv.slice(2);
const locks = new Locks(fileStore({ directory }), { logger: false });
const lease = await locks.acquire(key, JSON.parse(options) as AcquireOptions);
tellParent({ type: 'held', owner: lease.owner });
process.on(
  'message',
  (options: { within: number }) => void lease.handOver(options).then((ticket) => tellParent({ type: 'handedOver', ticket })),
);
setInterval(() => undefined, 60_000);
