import { execFile } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { startOnPort } from './free-port.js';
import { guardedFolder, startGuarded, type GuardedProcess } from './guarded-process.js';
import { howToLaunch, type Launch } from './services.js';

const run = promisify(execFile);

/** Where a server listens, as options for ioredis. */
export type RedisConnection = ({ path: string } | { host: string; port: number }) & { password?: string };

export interface StartRedisOptions {
  /** a TCP port of 127.0.0.1, or `'free'` for any; default: a unix socket and no port */
  port?: number | 'free';
  /** the server demands it; `connection` carries it */
  password?: string;
  /** more arguments, for example `['--maxmemory', '2mb']` */
  args?: string[];
  /** of the server's process; not in a container */
  env?: NodeJS.ProcessEnv;
  /** text of a configuration file, which the server may rewrite */
  config?: string;
}

/** A private server: nobody else uses it, and it ends with this process, however this process ends. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  const launch = await howToLaunch('redis-server');
  const port = options.port ?? (launch.kind === 'docker' ? 'free' : undefined);
  return startOnPort(port, (own) => new RedisServer(launch, own, options));
}

export class RedisServer {
  /** the unix socket, when there is no port */
  readonly path: string | undefined;
  readonly connection: RedisConnection;
  readonly folder = guardedFolder('redis');
  readonly #clients = new Set<Redis>();
  #process: GuardedProcess | undefined;

  constructor(
    private readonly launch: Launch,
    /** the TCP port of 127.0.0.1, when there is one */
    readonly port: number | undefined,
    private readonly options: StartRedisOptions,
  ) {
    this.path = port === undefined ? join(this.folder, 'redis.sock') : undefined;
    this.connection = this.path !== undefined ? { path: this.path } : { host: '127.0.0.1', port: port! };
    if (options.password !== undefined) this.connection.password = options.password;
    if (options.config !== undefined) writeFileSync(join(this.folder, 'redis.conf'), options.config);
  }

  /** of the redis-server itself */
  get pid(): number {
    if (!this.#process) throw new Error('The server is not started');
    return this.#process.pid;
  }

  /** A new client of its own connection; `stop` closes it. */
  client(options: RedisOptions = {}): Redis {
    // ioredis keeps a timer of this length when it disconnects from a server that is gone
    const client = new Redis({ disconnectTimeout: 100, ...this.connection, ...options });
    client.on('error', () => undefined); // the commands tell; without a listener ioredis prints
    client.once('end', () => this.#clients.delete(client));
    this.#clients.add(client);
    return client;
  }

  async start(): Promise<void> {
    const { command, args, container } = this.launch.kind === 'local' ? this.#local(this.launch) : this.#docker(this.launch);
    const process = await startGuarded({ command, args, container, folder: this.folder, env: this.options.env });
    this.#process = process;
    await eventually(() => (process.running ? this.#ready() : undefined), { every: 5 });
    if (!process.running) throw new Error(`redis-server ended with status ${await process.exited}:\n${process.log()}`);
  }

  /** SIGKILL; the socket or port stays reserved for `restart`, and nothing answers there. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** A new server process at the same address, empty unless `args` make it persist. Clients reconnect by themselves. */
  async restart(): Promise<void> {
    await this.#process?.end({ keepFolder: true });
    await this.start();
  }

  /** SIGSTOP: connections stay open, new ones are even accepted by the kernel, and nothing answers. */
  async pause(): Promise<void> {
    if (this.launch.kind === 'docker') await run('docker', ['pause', this.#container]);
    else this.#process?.signal('SIGSTOP');
  }

  async resume(): Promise<void> {
    if (this.launch.kind === 'docker') await run('docker', ['unpause', this.#container]);
    else this.#process?.signal('SIGCONT');
  }

  /** Ends the server, paused or not, closes the clients that `client` made, and removes the folder. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await this.#process?.end();
  }

  get #args(): string[] {
    const { password, config, args = [] } = this.options;
    return [
      ...(config !== undefined ? [join(this.folder, 'redis.conf')] : []),
      ...['--save', '', '--appendonly', 'no', '--dir', this.folder],
      ...(this.path !== undefined ? ['--port', '0', '--unixsocket', this.path] : ['--port', String(this.port), '--bind', '127.0.0.1']),
      ...(password !== undefined ? ['--requirepass', password] : []),
      ...args,
    ];
  }

  #local({ command }: Launch & { kind: 'local' }) {
    return { command, args: this.#args, container: undefined };
  }

  #docker({ image }: Launch & { kind: 'docker' }) {
    chmodSync(this.folder, 0o777); // the container's user is another
    const name = ['--name', this.#container, '--volume', `${this.folder}:${this.folder}`];
    const hostNetwork = process.platform === 'linux'; // elsewhere the engine lives in a virtual machine
    const network = hostNetwork ? ['--network', 'host'] : ['--publish', `127.0.0.1:${this.port}:${this.port}`];
    const bind = hostNetwork ? [] : ['--bind', '0.0.0.0', '--protected-mode', 'no'];
    const args = ['run', '--rm', ...name, ...network, image, 'redis-server', ...this.#args, ...bind];
    return { command: 'docker', args, container: this.#container };
  }

  get #container(): string {
    return `nestjs-distributed-lock-${process.pid}-${this.port}`;
  }

  /** It answers, and it is ours: a stranger may have taken the port. */
  async #ready(): Promise<void> {
    const reply = await ask(this.connection, 'INFO server\r\nPING');
    const pid = Number(/^process_id:(\d+)/m.exec(reply)?.[1]);
    if (Number.isNaN(pid) || /^-LOADING/m.test(reply)) throw new Error(`redis-server is not ready: ${reply.trim()}`);
    if (this.launch.kind === 'local' && pid !== this.pid) throw new Error('Address already in use by another redis-server');
  }
}

/** Inline commands over a connection of their own, answered with the raw replies. */
function ask(connection: RedisConnection, commands: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(connection);
    let reply = '';
    socket.setTimeout(1_000, () => socket.destroy());
    socket.setEncoding('utf8').on('data', (data: string) => (reply += data));
    socket.once('error', reject).once('close', () => resolve(reply));
    const auth = connection.password === undefined ? '' : `AUTH ${connection.password}\r\n`;
    socket.write(`${auth}${commands}\r\nQUIT\r\n`);
  });
}
