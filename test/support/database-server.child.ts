// Starts a server and waits to be killed. Arguments: which server; `paused`: it is stopped by then.
import { tellParent } from './child.js';
import { startMariadb } from './mariadb-server.js';
import { startPostgres } from './postgres-server.js';

export interface Started {
  type: 'started';
  pid: number;
  data: string;
}

const [which, state] = process.argv.slice(2);

void (which === 'postgres' ? startPostgres() : startMariadb()).then((server) => {
  if (state === 'paused') server.pause();
  tellParent({ type: 'started', pid: server.pid, data: server.data } satisfies Started);
  process.on('message', () => undefined); // stay
});
