import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import mysql from 'mysql2/promise';
import { copyTemplate, DatabaseServer, unprivileged } from './database-process.js';
import { startOnPort } from './free-port.js';
import { programOf } from './services.js';

/** Where a server listens, as options for `mysql2`. */
export type MariadbConnection = ({ socketPath: string } | { host: string; port: number }) & { user: string; database?: string };

export interface StartMariadbOptions {
  /** a TCP port of 127.0.0.1, or `'free'` for any; default: a unix socket and no port */
  port?: number | 'free';
  /** more arguments, for example `['--max-connections=10']` */
  args?: string[];
  /** a commit reaches the disk before it answers, as in production; default: only the system, which is faster and survives `kill` */
  durable?: boolean;
}

/** A private server: nobody else uses it, and it ends with this process, however this process ends. User `root`, no password. */
export async function startMariadb(options: StartMariadbOptions = {}): Promise<MariadbServer> {
  const program = await programOf('mariadbd');
  return startOnPort(
    options.port,
    (port) => new MariadbServer(program, port, options),
    async (server) => {
      await copyTemplate(templateOf(program), server.data);
      await server.start();
    },
  );
}

/** SIGTERM is its way to shut down. */
export class MariadbServer extends DatabaseServer {
  /** options for `mysql2` */
  readonly connection: MariadbConnection;
  readonly data = join(this.folder, 'data');

  constructor(
    program: string,
    /** the TCP port of 127.0.0.1, when there is one */
    readonly port: number | undefined,
    options: StartMariadbOptions,
  ) {
    super('mariadb', program);
    const socket = join(this.folder, 'socket');
    this.connection = { ...(port === undefined ? { socketPath: socket } : { host: '127.0.0.1', port }), user: 'root' };
    this.args = [
      ...[
        '--no-defaults',
        `--datadir=${this.data}`,
        `--socket=${socket}`,
        `--pid-file=${join(this.folder, 'pid')}`,
        `--tmpdir=${this.folder}`,
      ],
      ...(port === undefined ? ['--skip-networking'] : ['--bind-address=127.0.0.1', `--port=${port}`]),
      ...['--innodb-buffer-pool-size=32M', '--skip-log-bin', '--innodb-use-native-aio=0', ...small],
      ...(options.durable ? [] : ['--innodb-flush-log-at-trx-commit=2', '--innodb-flush-method=nosync', '--innodb-doublewrite=0']),
      ...(options.args ?? []),
    ];
  }

  get url(): string {
    return mariadbUrl(this.connection);
  }

  /** It answers, and it is ours: a stranger may have taken the port. */
  protected async ready(pid: number): Promise<boolean> {
    if (Number(readFileSync(join(this.folder, 'pid'), 'utf8')) !== pid) return false;
    const client = await mysql.createConnection(this.connection);
    await client.end();
    return true;
  }
}

export function mariadbUrl(connection: MariadbConnection): string {
  const { user, database = '' } = connection;
  return 'socketPath' in connection
    ? `mysql://${user}@localhost/${database}?socketPath=${encodeURIComponent(connection.socketPath)}`
    : `mysql://${user}@${connection.host}:${connection.port}/${database}`;
}

/** A new database is made and copied in a moment with these. */
const small = ['--innodb-log-file-size=4M', '--innodb-temp-data-file-path=ibtmp1:4M:autoextend'];

function templateOf(program: string) {
  return { program, recipe: `${small.join(' ')} as ${unprivileged?.uid}`, make: (folder: string) => bootstrap(program, folder) };
}

/** What mariadb-install-db does. That script needs a program of the client's package, which is not installed everywhere. */
async function bootstrap(program: string, data: string): Promise<void> {
  const files = ['mysql_system_tables.sql', 'mysql_performance_tables.sql', 'mysql_system_tables_data.sql'];
  const share = shareOf(program);
  const tables = files.map((file) => readFileSync(join(share, file), 'utf8'));
  const args = ['--no-defaults', '--bootstrap', `--datadir=${data}`, `--lc-messages-dir=${share}`, '--innodb-use-native-aio=0', ...small];
  const server = spawn(program, args, { ...unprivileged, cwd: data, stdio: ['pipe', 'pipe', 'pipe'] });
  let log = '';
  for (const output of [server.stdout, server.stderr]) output.setEncoding('utf8').on('data', (text: string) => (log += text));
  server.stdin.on('error', () => undefined); // its status tells
  server.stdin.end(['CREATE DATABASE mysql;', 'USE mysql;', 'SET @auth_root_socket=NULL;', ...tables, ''].join('\n'));
  const [status] = (await once(server, 'close')) as [number | null];
  if (status !== 0) throw new Error(`mariadbd --bootstrap ended with status ${status}:\n${log}`);
}

function shareOf(program: string): string {
  const root = dirname(dirname(realpathSync(program)));
  const folders = ['share/mysql', 'share/mariadb', 'share'].map((folder) => join(root, folder));
  const share = folders.find((folder) => existsSync(join(folder, 'mysql_system_tables.sql')));
  if (share === undefined) throw new Error(`The tables of a new MariaDB database are not in ${folders.join(', ')}`);
  return share;
}
