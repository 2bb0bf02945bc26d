import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import mysql from 'mysql2/promise';
import { copyTemplate, DatabaseServer, runUnprivileged, unprivileged } from './database-process.js';
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
      '--no-defaults',
      `--datadir=${this.data}`,
      `--socket=${socket}`,
      `--pid-file=${join(this.folder, 'pid')}`,
      `--tmpdir=${this.folder}`,
      ...(port === undefined ? ['--skip-networking'] : ['--bind-address=127.0.0.1', `--port=${port}`]),
      ...['--innodb-buffer-pool-size=32M', '--skip-log-bin', '--innodb-use-native-aio=0', ...settingsOf(program)],
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

/** Whether it is MySQL itself: on many machines `mysqld` is MariaDB. */
function isMysql(program: string): boolean {
  return (kinds[program] ??= !execFileSync(program, ['--no-defaults', '--version'], { encoding: 'utf8' }).includes('MariaDB'));
}

const kinds: Record<string, boolean> = {};

/** A new database is made and copied in a moment with these. What was unpacked, and not installed, is told where its files are. */
function settingsOf(program: string): string[] {
  const root = rootOf(program);
  const [messages, plugins] = [folderWith(root, 'english/errmsg.sys'), join(root, 'lib/mysql/plugin')];
  const folders = [
    `--basedir=${root}`,
    ...(messages === undefined ? [] : [`--lc-messages-dir=${messages}`, `--character-sets-dir=${join(messages, 'charsets')}`]),
    ...(existsSync(plugins) ? [`--plugin-dir=${plugins}`] : []),
  ];
  // The X protocol has one port for all, and the folder for files is there only where MySQL is installed.
  const ofMysql = ['--innodb-redo-log-capacity=8M', '--mysqlx=OFF', '--secure-file-priv=NULL'];
  return [...folders, ...(isMysql(program) ? ofMysql : ['--innodb-log-file-size=4M', '--innodb-temp-data-file-path=ibtmp1:4M:autoextend'])];
}

function templateOf(program: string) {
  const make = isMysql(program) ? initialize : bootstrap;
  const recipe = `${settingsOf(program).join(' ')} as ${unprivileged?.uid}`;
  return { program, recipe, make: (folder: string) => make(program, folder) };
}

async function initialize(program: string, data: string): Promise<void> {
  await runUnprivileged(program, ['--no-defaults', '--initialize-insecure', `--datadir=${data}`, ...settingsOf(program)], data);
  rmSync(join(data, 'auto.cnf')); // two servers of one id do not replicate
}

/** What mariadb-install-db does. That script needs a program of the client's package, which is not installed everywhere. */
async function bootstrap(program: string, data: string): Promise<void> {
  const root = rootOf(program);
  const [prefix, share] =
    ['mysql', 'mariadb'].map((name) => [name, folderWith(root, `${name}_system_tables.sql`)]).find(([, at]) => at) ?? [];
  if (share === undefined) throw new Error(`The tables of a new MariaDB database are not in ${root}`);
  const tables = ['system_tables', 'performance_tables', 'system_tables_data'].map((name) =>
    readFileSync(join(share, `${prefix}_${name}.sql`), 'utf8'),
  );
  // Each server that starts deletes the temporary tables of the others in its folder.
  const folders = [`--datadir=${data}`, `--tmpdir=${data}`];
  const args = ['--no-defaults', '--bootstrap', ...folders, '--innodb-use-native-aio=0', ...settingsOf(program)];
  const server = spawn(program, args, { ...unprivileged, cwd: data, stdio: ['pipe', 'pipe', 'pipe'] });
  let log = '';
  for (const output of [server.stdout, server.stderr]) output.setEncoding('utf8').on('data', (text: string) => (log += text));
  server.stdin.on('error', () => undefined); // its status tells
  server.stdin.end(['CREATE DATABASE mysql;', 'USE mysql;', 'SET @auth_root_socket=NULL;', ...tables, ''].join('\n'));
  const [status] = (await once(server, 'close')) as [number | null];
  if (status !== 0) throw new Error(`mariadbd --bootstrap ended with status ${status}:\n${log}`);
}

function rootOf(program: string): string {
  return dirname(dirname(realpathSync(program)));
}

/** The folder of an installation that has this file. */
function folderWith(root: string, file: string): string | undefined {
  return ['share/mysql', 'share/mariadb', 'share'].map((folder) => join(root, folder)).find((folder) => existsSync(join(folder, file)));
}
