// Increments a counter by reading and writing it, so many times, each in a transaction with its lock.
import { lockInTransaction } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { tellParent } from '../../support/child.js';

const [url, key, times] = process.argv.slice(2) as [string, string, string];
const client = new pg.Client(url);
await client.connect();
for (let i = 0; i < Number(times); i++) {
  await client.query('BEGIN');
  await lockInTransaction((text, values) => client.query(text, values), key, { waitTimeout: 60_000 });
  const { rows } = await client.query<{ n: number }>('SELECT n FROM counter');
  const n = rows[0]!.n + 1;
  await client.query('INSERT INTO entries VALUES ($1)', [n]);
  await client.query('UPDATE counter SET n = $1', [n]);
  await client.query('COMMIT');
}
await client.end();
tellParent({ type: 'done' });
