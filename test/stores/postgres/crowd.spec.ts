import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { staysTrue } from '../../support/eventually.js';
import { startPostgres } from '../../support/postgres-server.js';

const READERS = 200;
/** Three renewals of each. */
const HELD = 12_000;

it('200 readers of one key, each over a store of its own, are let in, and none loses its lease (G4, G8)', async () => {
  const server = await startPostgres({ config: ['max_connections = 1000'], durable: true });
  const all = Array.from({ length: READERS }, () => {
    const store = postgresStore({ url: server.url, schema: 'create', max: 2 });
    return new Locks(store, { logger: false });
  });
  try {
    const leases = await Promise.all(all.map((locks) => locks.readWriteLock('doc').read.acquire({ waitTimeout: 60_000 })));
    await staysTrue(() => leases.every(({ signal }) => !signal.aborted), HELD);
  } finally {
    await Promise.all(all.map((locks) => locks.close()));
    await server.stop();
  }
});
