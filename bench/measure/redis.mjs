import { startRedis as start } from '../../test/support/redis-server.ts';
import { programOf } from '../../test/support/services.ts';

/** Commands of the benchmark itself. */
const OWN = /^(config|info|flushall|exists|dbsize|ping|client|hello|command|script)\b/;

/** A private redis-server on TCP, as in production: on a unix socket the commands themselves weigh more. */
export async function startRedis() {
  await programOf('redis-server'); // a container would add its network
  const server = await start({ port: 'free', args: ['--maxclients', '1000'] });
  const client = server.client({ retryStrategy: () => 20, maxRetriesPerRequest: null });
  return new MeasuredRedis(server, client, /redis_version:(\S+)/.exec(await client.info('server'))[1]);
}

class MeasuredRedis {
  constructor(server, client, version) {
    const { port, pid } = server;
    Object.assign(this, { port, pid, url: `redis://127.0.0.1:${port}`, version, client, stop: () => server.stop() });
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
