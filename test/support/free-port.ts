import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';

/**
 * A port of 127.0.0.1 that nobody listens on, and that the system gives to no outgoing connection: nothing slips in while a server is down, and a client
 * that keeps trying the port cannot meet itself. On a machine that leaves no such ports, or has none free, any port that is free now.
 */
export async function freePort(): Promise<number> {
  const [first, last] = outgoingPorts();
  // The lower ones first: a node of a Redis Cluster also needs the port that is 10,000 above its own.
  const [from, to] = [
    [10_000, first],
    [last + 1, 65_536],
  ].find(([low, high]) => high! - low! > 1_000) ?? [0, 0];
  for (let tries = 0; to! > 0 && tries < 1_000; tries++) {
    const port = from! + Math.floor(Math.random() * (to! - from!));
    if (await listenOnce(port)) return port;
  }
  return (await listenOnce(0))!;
}

/** The first and the last port that the system takes for outgoing connections; where it does not say, more than those of any system by default. */
function outgoingPorts(): [number, number] {
  try {
    const [first, last] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number);
    return [first!, last!];
  } catch {
    return [32_768, 65_535];
  }
}

/** The port, if it is free; with 0 one that the system chooses. */
function listenOnce(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const { port: own } = server.address() as AddressInfo;
      server.close(() => resolve(own));
    });
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
