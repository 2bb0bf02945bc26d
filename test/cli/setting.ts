import { Locks, type Lease, type LocksOptions } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { askable } from '../support/askable.js';
import type { Documents, NdlDocument, NdlError } from '../../lib/operate/ndl-document.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

/** A document that the command has printed, and nothing else. */
export function documentIn<Command extends keyof Documents>(text: string, _command: Command): NdlDocument<Command> {
  const document = JSON.parse(text) as NdlDocument<Command>;
  expect(document.v).toBe(1);
  return document;
}

export function errorIn(text: string): NdlError['error'] {
  return (JSON.parse(text) as NdlError).error;
}

/** Holds a key until it is asked back. */
export async function hold(locks: Locks, key: string, label?: string): Promise<Lease> {
  const lease = await locks.acquire(key, { label, waitTimeout: Infinity, keyTimeout: 60_000 });
  lease.signal.addEventListener('abort', () => void lease.release().catch(() => undefined));
  return lease;
}

/** A private Redis with a password, for the tests of a file, and the services on it. */
export function useRedis() {
  let server: RedisServer;
  const url = (): string => `redis://:geheim@127.0.0.1:${server.port}`;
  beforeAll(async () => void (server = await startRedis({ port: 'free', password: 'geheim' })));
  afterAll(() => server.stop());
  const services: Locks[] = [];
  afterEach(() => Promise.all(services.splice(0).map((each) => each.close())));
  afterEach(() => server.client().flushall());
  /** Has a store of its own: the commands see it as they see another process. It ends after its test. */
  const service = (options?: LocksOptions, isAskable = true): Locks => {
    const locks = new Locks(redisStore({ url: url() }), { logger: false, app: 'shop', shutdownTimeout: 0, ...options });
    services.push(locks);
    return isAskable ? askable(locks) : locks;
  };
  return {
    get server() {
      return server;
    },
    get url() {
      return url();
    },
    service,
    /** A service holds order:42, and another one waits for it. */
    async heldAndWaitedFor(): Promise<Lease> {
      const held = await hold(service(), 'order:42', 'Orders.pay');
      void hold(service(), 'order:42', 'Orders.cancel').catch(() => undefined);
      await eventually(async () => expect(await server.client().zcard('{order:42}:queue')).toBe(1));
      return held;
    },
  };
}
