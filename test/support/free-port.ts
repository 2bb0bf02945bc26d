import { createServer } from 'node:net';

/**
 * A port of 127.0.0.1 that nobody listens on, below the range that systems take for outgoing connections: nothing slips in while a
 * server is down, and a client that keeps trying the port cannot meet itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
