import { writeFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { copyTemplate, DatabaseServer, runUnprivileged, unprivileged } from './database-process.js';
import { startOnPort } from './free-port.js';
import { programOf } from './services.js';

/** Where a server listens, as options for `pg`; `host` is a folder where it listens on a unix socket. */
export interface PostgresConnection {
  host: string;
  port: number;
  user: string;
  database: string;
}

export interface StartPostgresOptions {
  /** a TCP port of 127.0.0.1, or `'free'` for any; default: a unix socket and no port */
  port?: number | 'free';
  /** lines of postgresql.conf; they outrank the defaults here */
  config?: string[];
  /** a commit reaches the disk before it answers, as in production; default: only the system, which is faster and survives `kill` */
  durable?: boolean;
}

/** A private server: nobody else uses it, and it ends with this process, however this process ends. User `postgres`, no password. */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<PostgresServer> {
  const program = await programOf('postgres');
  return start(program, options, (data) => copyTemplate(templateOf(program), data));
}

function start(program: string, options: StartPostgresOptions, fill: (data: string) => Promise<unknown>): Promise<PostgresServer> {
  return startOnPort(
    options.port,
    (port) => new PostgresServer(program, port, options),
    async (server) => {
      await fill(server.data);
      server.configure();
      await server.start();
    },
  );
}

/** `pid` is that of the postmaster. */
export class PostgresServer extends DatabaseServer {
  /** options for `pg` */
  readonly connection: PostgresConnection;
  readonly data = join(this.folder, 'data');

  constructor(
    program: string,
    /** the TCP port of 127.0.0.1, when there is one */
    readonly port: number | undefined,
    private readonly options: StartPostgresOptions,
  ) {
    super('postgres', program);
    this.connection = { host: port === undefined ? this.folder : '127.0.0.1', port: port ?? 5432, user: 'postgres', database: 'postgres' };
    this.args = ['-D', this.data];
  }

  get url(): string {
    return postgresUrl(this.connection);
  }

  /** Writes its configuration, once its data are there. */
  configure(): void {
    const { options, connection } = this;
    const durable = options.durable ? [] : ['fsync = off', 'full_page_writes = off'];
    const lines = [
      `port = ${connection.port}`,
      `listen_addresses = '${this.port === undefined ? '' : '127.0.0.1'}'`,
      `unix_socket_directories = '${this.port === undefined ? this.folder : ''}'`,
      'shared_buffers = 32MB',
      ...durable,
      ...(options.config ?? []),
    ];
    writeFileSync(join(this.data, 'postgresql.conf'), lines.join('\n') + '\n');
  }

  /** A replica that streams from this one, asynchronously unless `config` of this one says otherwise, as `standby`. */
  async standby(options: StartPostgresOptions = {}): Promise<PostgresServer> {
    const { host, port, user } = this.connection;
    const from = ['-h', host, '-p', String(port), '-U', user];
    return start(this.program, options, (data) => {
      const args = ['-D', data, ...from, '--write-recovery-conf', '--wal-method=stream', '--checkpoint=fast'];
      return runUnprivileged(join(dirname(this.program), 'pg_basebackup'), args, dirname(data));
    });
  }

  /** Makes a standby the primary; resolves when it takes writes. The old primary is not told. */
  async promote(): Promise<void> {
    await runUnprivileged(join(dirname(this.program), 'pg_ctl'), ['promote', '-w', '-D', this.data], this.folder);
  }

  /** It says so itself, in the file that holds its pid: a stranger at the same port does not count. */
  protected ready(pid: number): boolean {
    const lines = readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n');
    return Number(lines[0]) === pid && ['ready', 'standby'].includes(lines[7]?.trim() ?? '');
  }
}

export function postgresUrl({ host, port, user, database }: PostgresConnection): string {
  return host.startsWith('/')
    ? `postgresql://${user}@localhost:${port}/${database}?host=${host}`
    : `postgresql://${user}@${host}:${port}/${database}`;
}

function templateOf(program: string) {
  const options = ['-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--wal-segsize=1', '--no-sync'];
  return {
    program,
    recipe: `${options.join(' ')} as ${unprivileged?.uid}`,
    make: (folder: string) => runUnprivileged(join(dirname(program), 'initdb'), [...options, '-D', folder], folder).then(() => undefined),
  };
}
