import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
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

async function roundTrip(port) {
  const client = new Redis(port, '127.0.0.1');
  const times = [];
  for (let i = 0; i < 200; i++) {
    const start = performance.now();
    await client.ping();
    times.push(performance.now() - start);
  }
  client.disconnect();
  return median(times.slice(50));
}
