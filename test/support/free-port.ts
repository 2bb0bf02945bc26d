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

/**
 * A server of one's own that has started; with `'free'` on another port, if another process was faster to take the first one.
 *
 * @param start makes it usable; default: calls its `start`
 */
export async function startOnPort<S extends { start(): Promise<void>; stop(): Promise<void> }>(
  port: number | 'free' | undefined,
  make: (port: number | undefined) => S,
  start: (server: S) => Promise<unknown> = (server) => server.start(),
): Promise<S> {
  for (let attempt = 1; ; attempt++) {
    const server = make(port === 'free' ? await freePort() : port);
    try {
      await start(server);
      return server;
    } catch (error) {
      await server.stop();
      const taken = /Address already in use|port is already allocated/i.test(String(error));
      if (!taken || port !== 'free' || attempt === 10) throw error;
    }
  }
}
