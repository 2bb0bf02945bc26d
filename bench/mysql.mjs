// Locks on MariaDB next to what they must cost at least: two bare UPDATEs, each a commit. On a private server whose commits reach the disk.
//
//   npm run bench:mysql [-- --busy]
import mysql from 'mysql2/promise';
import { Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { mariadbUrl, startMariadb } from '../test/support/mariadb-server.ts';
import { refuseIfBusy } from './measure/busy.mjs';
import { besideBare, CALLERS, CONNECTIONS } from './measure/beside-bare.mjs';

await refuseIfBusy();
const server = await startMariadb({ durable: true });
const root = await mysql.createConnection(server.connection);
await root.query('CREATE DATABASE shop');
await root.end();
const url = mariadbUrl({ ...server.connection, database: 'shop' });
const locks = new Locks(mysqlStore({ url, schema: 'create', max: CONNECTIONS }), { logger: false });
const pool = mysql.createPool({ uri: url, connectionLimit: CONNECTIONS });
await pool.query('CREATE TABLE bare (id varbinary(100) PRIMARY KEY, n int NOT NULL) ENGINE = InnoDB');
await pool.query('INSERT INTO bare VALUES ?', [Array.from({ length: CALLERS }, (_, i) => [`key ${i}`, 0])]);

await besideBare('MariaDB', locks, (key) => pool.query('UPDATE bare SET n = n + 1 WHERE id = ?', [key]), {
  lone: '; goal: at most 1.7',
  many: '',
});

await locks.close();
await pool.end();
await server.stop();
