import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { startPostgres } from '../../support/postgres-server.js';

const READERS = 100;
/** Nothing ends by itself here, and no answer is late: how soon a busy machine renews so many leases is no question of this test. Each change is one of the same row. */
const PATIENT = { keyTimeout: 600_000, waitTimeout: Infinity };

it(`${READERS} readers of one key, each over a store of its own, are let in, renew all at once, and none loses its lease (G4, G8)`, async () => {
  const server = await startPostgres({ config: ['max_connections = 1000'], durable: true });
  const all = Array.from({ length: READERS }, () => {
    const store = postgresStore({ url: server.url, schema: 'create', max: 2, requestTimeout: 60_000 });
    return new Locks(store, { logger: false });
  });
  const holders = async (): Promise<number> => (await all[0]!.inspect('doc')).holders.length;
  try {
    const leases = await Promise.all(all.map((locks) => locks.readWriteLock('doc').read.acquire(PATIENT)));
    expect(await holders()).toBe(READERS);
    await Promise.all(leases.map((lease) => lease.renew()));
    expect(leases.filter(({ signal }) => signal.aborted)).toEqual([]);
    expect(await holders()).toBe(READERS);
    expect(new Set(await Promise.all(leases.map((lease) => lease.release())))).toEqual(new Set([true]));
    expect(await holders()).toBe(0);
  } finally {
    await Promise.all(all.map((locks) => locks.close()));
    await server.stop();
  }
}, 600_000);
