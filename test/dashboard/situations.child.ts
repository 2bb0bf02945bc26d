// A process that does what it is asked, in the situations of an operator.
import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

const [url = '', app = ''] = process.argv.slice(2);
const store = url.startsWith('redis') ? redisStore({ url }) : postgresStore({ url });
const locks = new Locks(store, { app, logger: false, defaults: { keyTimeout: 60_000, waitTimeout: Infinity } });

interface Order {
  verb: keyof typeof VERBS;
  key: string;
  label: string;
  count?: number;
  next?: string;
  keyTimeout?: number;
}
const lockOf = (key: string) => (key === 'gpu' ? locks.semaphore(key, { permits: 3 }) : locks.mutex(key));

const VERBS = {
  hold: async ({ key, label, count = 1, keyTimeout = 60_000 }: Order) => {
    for (let i = 0; i < count; i++) await lockOf(key).acquire({ label, keyTimeout });
  },
  wait: async ({ key, label, count = 1 }: Order) => {
    for (let i = 0; i < count; i++) void lockOf(key).acquire({ label });
  },
  /** Holds a key and, when it is asked to, waits for the next one. */
  chain: async ({ key, label, next = '' }: Order) => {
    await new Promise<void>((holds) => {
      const goesOn = new Promise((resolve) => process.once('message', resolve));
      void locks.using(key, async () => (holds(), await goesOn, locks.acquire(next, { label })), { label });
    });
  },
  tick: async ({ key, label }: Order) => {
    await locks.using(key, () => undefined, { label, minHold: 3_600_000, waitTimeout: 0, onTimeout: 'skip' });
  },
  /** Whoever waits here has waited for five minutes more. */
  later: async () => {
    const now = performance.now.bind(performance);
    performance.now = () => now() + 300_000;
  },
  goOn: async () => undefined,
};
process.on('message', (order: Order) => void VERBS[order.verb](order).then(() => tellParent({ type: 'done' })));
await store.bus!.open(() => undefined);
tellParent({ type: 'done' });
