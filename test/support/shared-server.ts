import { randomBytes } from 'node:crypto';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { mariadbUrl, type MariadbConnection } from './mariadb-server.js';
import { postgresUrl, type PostgresConnection } from './postgres-server.js';
import { shared } from './shared-server.ask.js';

/** A database of one test file, on a server that all of the run share. */
export interface SharedDatabase<Connection> {
  /** options for the client */
  connection: Connection;
  url: string;
}

// The modules of a test file are its own, so these are too.
let postgres: Promise<SharedDatabase<PostgresConnection>> | undefined;
let mariadb: Promise<SharedDatabase<MariadbConnection>> | undefined;

/** A fresh database of this test file, as options for `pg`, on one server per run, started when the first file asks. */
export function sharedPostgres(): Promise<SharedDatabase<PostgresConnection>> {
  return (postgres ??= createOnPostgres());
}

/** As `sharedPostgres`, with options for `mysql2`. */
export function sharedMariadb(): Promise<SharedDatabase<MariadbConnection>> {
  return (mariadb ??= createOnMariadb());
}

async function createOnPostgres() {
  const server = await shared('postgres');
  const connection = { ...server, database: freshName() };
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`CREATE DATABASE ${connection.database}`);
  await client.end();
  return { connection, url: postgresUrl(connection) };
}

async function createOnMariadb() {
  const server = await shared('mariadb');
  const connection = { ...server, database: freshName() };
  const client = await mysql.createConnection(server);
  await client.query(`CREATE DATABASE ${connection.database}`);
  await client.end();
  return { connection, url: mariadbUrl(connection) };
}

function freshName(): string {
  return `test_${randomBytes(6).toString('hex')}`;
}
