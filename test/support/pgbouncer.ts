import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { DatabaseServer } from './database-process.js';
import { postgresUrl, type PostgresConnection } from './postgres-server.js';
import { startOnPort } from './free-port.js';
import { programOf } from './services.js';

export interface StartPgbouncerOptions {
  /** the server behind it */
  to: PostgresConnection;
  /** default: `'transaction'`, where consecutive transactions of a client may run on different connections */
  poolMode?: 'session' | 'transaction' | 'statement';
  /** more lines of its `[pgbouncer]` section */
  config?: string[];
}

/** A connection pooler of one's own, on a unix socket; it ends with this process, however this process ends. */
export async function startPgbouncer(options: StartPgbouncerOptions): Promise<Pgbouncer> {
  const program = await programOf('pgbouncer');
  return startOnPort(undefined, () => new Pgbouncer(program, options));
}

export class Pgbouncer extends DatabaseServer {
  /** options for `pg` */
  readonly connection: PostgresConnection;

  constructor(program: string, { to, poolMode = 'transaction', config = [] }: StartPgbouncerOptions) {
    super('pgbouncer', program);
    this.connection = { ...to, host: this.folder, port: 6432 };
    const lines = [
      '[databases]',
      `* = host=${to.host} port=${to.port}`,
      '[pgbouncer]',
      ...['auth_type = any', `pool_mode = ${poolMode}`, `listen_port = ${this.connection.port}`, 'admin_users = postgres'],
      `unix_socket_dir = ${this.folder}`,
      ...config,
    ];
    // `any` logs in as one user, whoever comes
    lines[1] += ` user=${to.user}`;
    const file = join(this.folder, 'pgbouncer.ini');
    writeFileSync(file, `${lines.join('\n')}\n`);
    this.args = [file];
  }

  get url(): string {
    return postgresUrl(this.connection);
  }

  protected async ready(): Promise<void> {
    const client = new pg.Client({ ...this.connection, database: 'pgbouncer', user: 'pgbouncer' });
    client.on('error', () => undefined);
    await client.connect();
    await client.end();
  }
}
