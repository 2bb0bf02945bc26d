import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { sleep } from './clock.mjs';
import { median } from './statistics.mjs';

/** Loopback, or a proxy in front of it that makes each round trip 1 ms longer; with the round trip that was measured. */
export async function openNetwork(name, redis) {
  const network = name === 'loopback' ? { port: redis.port, close: () => undefined } : await delayed(redis.port, 1);
  return { ...network, name, roundTrip: await roundTrip(network.port) };
}

async function delayed(target, delay) {
  const proxy = fork(fileURLToPath(new URL('delay-proxy.mjs', import.meta.url)), [target, delay], { execArgv: [] });
  const [port] = await once(proxy, 'message');
  return { port, close: () => proxy.disconnect() };
}

const roundTrip = (port) => pings(port, 200, 50);

/** Milliseconds that a PING takes on a machine that had nothing to do for a while: processors that sleep are slow to wake. */
export const roundTripAfterPause = (port, count) => pings(port, count, 5, 20);

async function pings(port, count, warmUp, pause) {
  const client = new Redis(port, '127.0.0.1');
  const times = [];
  for (let i = 0; i < count + warmUp; i++) {
    if (pause) await sleep(pause);
    const start = performance.now();
    await client.ping();
    times.push(performance.now() - start);
  }
  client.disconnect();
  return median(times.slice(warmUp));
}
