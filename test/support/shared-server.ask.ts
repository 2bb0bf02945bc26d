import { connect } from 'node:net';
import type { Connections } from './shared-server.start.js';

/** jest's main process keeps the servers; a script that runs by itself starts its own. `which` tells several of one kind apart. */
export async function shared<Name extends keyof Connections>(name: Name, which = ''): Promise<Connections[Name]> {
  const path = process.env.TEST_SHARED_SERVERS;
  const answer =
    path === undefined
      ? await (await import('./shared-server.start.js')).startShared(name)
      : await ask<Connections[Name]>(path, `${name} ${which}`);
  if ('error' in answer) throw new Error(`No shared ${name}: ${answer.error}`);
  return answer.connection;
}

function ask<Connection>(path: string, name: string): Promise<{ connection: Connection } | { error: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let answer = '';
    socket.setEncoding('utf8').on('data', (data: string) => (answer += data));
    socket.once('error', reject).once('end', () => resolve(JSON.parse(answer) as { connection: Connection } | { error: string }));
    socket.write(`${name}\n`);
  });
}
