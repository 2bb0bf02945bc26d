// Holds keys in a process of its own, and does with them what it is asked to.
import { type LockStore, Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

export type HolderMessage =
  { type: 'ready' } | { type: 'holds'; key: string; owner: string; token: number } | { type: 'lost'; key: string };
export type HolderRequest =
  | { type: 'hold'; key: string; label?: string; keyTimeout?: number; isStubborn?: boolean }
  | { type: 'nest'; keys: [string, string]; label: string }
  | { type: 'go' }
  | { type: 'end' };

const [kind, options] = process.argv.slice(2) as [string, string];
const stores: Record<string, (options: object) => LockStore> = {
  redis: (given) => redisStore(given as never),
  postgres: (given) => postgresStore(given as never),
  mysql: (given) => mysqlStore(given as never),
};
const locks = new Locks(stores[kind]!(JSON.parse(options) as object), { logger: false, app: 'shop', visible: true });
let end = (): void => undefined;
const ended = new Promise<void>((resolve) => (end = resolve));

let go = (): void => undefined;
/** to the second key */
const isToGo = new Promise<void>((resolve) => (go = resolve));

async function hold({ key, label, keyTimeout = 10_000, isStubborn = false }: HolderRequest & { type: 'hold' }): Promise<void> {
  await locks.using(
    key,
    async ({ signal, owner, fencingToken }) => {
      tellParent({ type: 'holds', key, owner, token: fencingToken });
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      void aborted.then(() => tellParent({ type: 'lost', key }));
      await (isStubborn ? ended : Promise.race([ended, aborted]));
    },
    { waitTimeout: Infinity, keyTimeout, label },
  );
}

async function nest({ keys: [outer, inner], label }: HolderRequest & { type: 'nest' }): Promise<void> {
  await locks.using(
    outer,
    async ({ owner, fencingToken }) => {
      tellParent({ type: 'holds', key: outer, owner, token: fencingToken });
      await isToGo;
      await locks.using(inner, async () => undefined, { waitTimeout: 60_000, label });
    },
    { label, waitTimeout: 60_000 },
  );
}

process.on('message', (request: HolderRequest) => {
  if (request.type === 'hold') hold(request).catch(() => undefined);
  else if (request.type === 'nest') nest(request).catch(() => undefined);
  else if (request.type === 'go') go();
  else {
    end();
    void locks.close().then(() => process.disconnect());
  }
});
tellParent({ type: 'ready' });
