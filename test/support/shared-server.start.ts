import { startMariadb, type MariadbConnection } from './mariadb-server.js';
import { startPostgres, type PostgresConnection } from './postgres-server.js';

/** A server that test files share, as a value that goes over a socket. */
export interface Shared {
  connection: PostgresConnection | MariadbConnection;
}

export const starters = {
  postgres: () => startPostgres({ config: ['max_connections = 400'] }),
  mariadb: () => startMariadb({ args: ['--max-connections=400'] }),
};

export async function startShared(name: keyof typeof starters): Promise<Shared> {
  const { connection } = await starters[name]();
  return { connection };
}
