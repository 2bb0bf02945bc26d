// Starts a server, pauses it, and waits to be killed. Argument: which server.
import { tellParent } from './child.js';
import { startMariadb } from './mariadb-server.js';
import { startPostgres } from './postgres-server.js';
import { startRedis } from './redis-server.js';

export interface Started {
  type: 'started';
  pid: number;
  folder: string;
}

const start = { redis: startRedis, postgres: startPostgres, mariadb: startMariadb }[process.argv[2] as 'redis' | 'postgres' | 'mariadb'];

void start().then(async (server) => {
  await server.pause();
  tellParent({ type: 'started', pid: server.pid, folder: server.folder } satisfies Started);
  process.on('message', () => undefined); // stay
});
