// Locks on Postgres next to what they must cost at least: two bare UPDATEs, each a commit. On a private server whose commits reach the disk.
//
//   npm run bench:postgres [-- --busy]
import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { startPostgres } from '../test/support/postgres-server.ts';
import { refuseIfBusy } from './measure/busy.mjs';
import { besideBare, CALLERS, CONNECTIONS } from './measure/beside-bare.mjs';

await refuseIfBusy();
const server = await startPostgres({ durable: true });
const locks = new Locks(postgresStore({ url: server.url, schema: 'create', max: CONNECTIONS }), { logger: false });
const pool = new pg.Pool({ ...server.connection, max: CONNECTIONS });
await pool.query('CREATE TABLE bare (key text PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 50)');
await pool.query("INSERT INTO bare SELECT 'key ' || i, 0 FROM generate_series(0, $1::int - 1) i", [CALLERS]);

await besideBare(
  'Postgres',
  locks,
  (key) => pool.query({ name: 'bare', text: 'UPDATE bare SET n = n + 1 WHERE key = $1', values: [key] }),
  { lone: '; goal: at most 1.2', many: '; goal: at least 4' },
);

await locks.close();
await pool.end();
await server.stop();
