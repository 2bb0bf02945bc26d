// In jest's main process: starts a server when the first spec asks for it. The server ends with this process, however that ends, and not with
// the worker that asked: workers come and go.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @returns {Promise<string>} the unix socket on which it is asked: `postgres\n`, or `redisCluster 2\n` for one of several, answered by one line of JSON */
export async function keepSharedServers() {
  const folder = mkdtempSync(join(tmpdir(), 'servers-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const started = {};
  const listener = createServer((socket) => {
    socket.unref();
    socket.on('error', () => undefined); // the worker is gone
    socket.setEncoding('utf8').once('data', async (name) => {
      const answer = await (started[name] ??= start(name.trim().split(' ')[0])).catch((error) => ({ error: String(error.stack) }));
      socket.end(`${JSON.stringify(answer)}\n`);
    });
  });
  listener.unref();
  const path = join(folder, 'socket');
  await new Promise((resolve, reject) => listener.once('error', reject).listen(path, resolve));
  return path;
}

async function start(name) {
  // Most runs need none, so this is loaded now.
  const { tsImport } = await import('tsx/esm/api');
  const { startShared } = await tsImport('./shared-server.start.ts', import.meta.url);
  return startShared(name);
}
