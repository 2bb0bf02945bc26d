import { Locks, LockLostError } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

export type AdopterMessage = { type: 'ready' } | { type: 'adopted'; token: number } | { type: 'refused' };

// Adopts the leases of tickets that it is sent, and holds them for a moment, or until it is killed.
const { engine, options } = JSON.parse(process.argv[2]!) as { engine: keyof typeof STORES; options: object };
const STORES = { redis: redisStore, postgres: postgresStore };
const locks = new Locks(STORES[engine](options as never), { logger: false, defaults: { keyTimeout: 5_000, waitTimeout: 5_000 } });
await locks.checkStore();
process.on('message', ({ ticket, hold }: { ticket: string; hold: number }) => {
  const adopt = async (): Promise<void> => {
    await using lease = await locks.adopt(ticket);
    tellParent({ type: 'adopted', token: lease.fencingToken! } satisfies AdopterMessage);
    await new Promise((resolve) => setTimeout(resolve, hold));
  };
  adopt().catch((error: unknown) => {
    if (!(error instanceof LockLostError)) throw error;
    tellParent({ type: 'refused' } satisfies AdopterMessage);
  });
});
tellParent({ type: 'ready' } satisfies AdopterMessage);
