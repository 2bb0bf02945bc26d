// Starts a server and waits to be killed. `paused` as argument: the server is stopped by then.
import { tellParent } from './child.js';
import { startRedis } from './redis-server.js';

export interface Started {
  type: 'started';
  pid: number;
  path: string;
}

void startRedis().then(async (server) => {
  if (process.argv.includes('paused')) await server.pause();
  tellParent({ type: 'started', pid: server.pid, path: server.path! } satisfies Started);
  process.on('message', () => undefined); // stay
});
