// A private redis-server on TCP, as in production: on a unix socket the commands themselves weigh more.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ensureServices } from '../../scripts/services.mjs';

/** What the benchmark itself asks. */
const OWN = /^(config|info|flushall|exists|dbsize|ping|client|hello|command|script)\b/;

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export async function startRedis() {
  const service = ensureServices(['redis-server'])['redis-server'];
  if (service.kind !== 'local') throw new Error('The benchmarks need a redis-server on this machine: a container adds its network.');
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const port = await freePort();
  const args = ['--bind', '127.0.0.1', '--port', port, '--dir', folder, '--save', '', '--appendonly', 'no', '--maxclients', '1000'];
  const child = spawn(service.command, args, { stdio: 'ignore' });
  const end = () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', end);
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null }).on('error', () => undefined);
  const version = /redis_version:(\S+)/.exec(await client.info('server'))[1];
  return new RedisServer(port, child.pid, version, client, () => {
    client.disconnect();
    process.off('exit', end);
    end();
  });
}

class RedisServer {
  constructor(port, pid, version, client, stop) {
    Object.assign(this, { port, pid, version, client, stop });
  }

  async empty() {
    await this.client.flushall();
  }

  /** From here on it is counted. */
  async reset() {
    await this.client.config('RESETSTAT');
    this.cpuBefore = await this.#cpu();
  }

  /** Since `reset`: CPU in milliseconds; calls of each command, of clients and in scripts, without ours; microseconds that a call of it took. */
  async usage() {
    const cpu = (await this.#cpu()) - this.cpuBefore;
    const commands = {};
    const took = {};
    for (const [, name, calls, usec] of (await this.client.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
      if (OWN.test(name)) continue;
      commands[name] = Number(calls);
      took[name] = usec / calls;
    }
    return { cpu, commands, took };
  }

  /** How many of these keys exist. */
  async existing(keys) {
    let count = 0;
    for (let i = 0; i < keys.length; i += 1000) count += await this.client.exists(...keys.slice(i, i + 1000));
    return count;
  }

  async #cpu() {
    const info = await this.client.info('cpu');
    const seconds = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1]);
    return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1000;
  }
}
