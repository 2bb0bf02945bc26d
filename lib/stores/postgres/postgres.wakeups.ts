import { randomBytes } from 'node:crypto';
import { Inbox, type InboxConnection, type Tell } from '../../core/store/inbox.js';
import { after, connectTimeout } from '../../core/util/clock.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { PostgresBus } from './postgres.bus.js';
import type { Row } from './postgres.connection.js';
import { listenWith, type OpenSource } from './postgres.listener.js';

/** Milliseconds after the last wait or renewal until it is closed: a database that sleeps when nobody is connected could never do so. */
const IDLE = 300_000;
/** Stands among the owners for the bus: while it is open, the inbox is, too. */
const OPERATORS = '';

/** The inbox of this process on Postgres: a channel, on one connection that only listens. */
export class PostgresWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = `distributed_lock_${randomBytes(8).toString('hex')}`;
  readonly bus: PostgresBus;
  /** The server wakes all backends that listen for each message, so that checks of n processes cost it n² of these. */
  protected override readonly checkInterval = 10_000;
  /** The owners that wait, and {@link OPERATORS}. */
  private readonly waiting = new Set<string>();
  private idle: NodeJS.Timeout | undefined;

  /**
   * @param source opens what listens.
   * @param ask sends over the connections that also release. A pooler may deliver messages of the listening one to nobody.
   */
  constructor(
    private readonly source: OpenSource,
    private readonly ask: (text: string, values: readonly unknown[]) => Promise<readonly Row[]>,
    timeout: number,
    table: string,
  ) {
    super('Postgres', timeout, 'listen over another connection', connectTimeout(timeout));
    this.bus = new PostgresBus(this.inbox, table, timeout, this.send, (...log) => {
      this.waiting.add(OPERATORS);
      return this.openForBus(...log);
    });
  }

  override open(warn: Tell, debug?: Tell): Promise<void> {
    // A caller may get its key before it is open.
    this.closeLater();
    return super.open(warn, debug);
  }

  override listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.waiting.add(owner);
    const stop = super.listen(owner, wake);
    return () => {
      stop();
      if (this.waiting.delete(owner)) this.closeLater();
    };
  }

  /** If nobody waits until then. */
  private closeLater(): void {
    clearTimeout(this.idle);
    if (this.waiting.size > 0) return;
    this.idle = after(IDLE, () => {
      if (this.waiting.size === 0) this.close();
    }).unref();
  }

  override close(): void {
    super.close();
    clearTimeout(this.idle);
    this.waiting.delete(OPERATORS);
  }

  protected read(text: string): boolean {
    return readMessage(text, (owner, askIn) => void this.wake(owner, askIn));
  }

  protected connect(): InboxConnection {
    return listenWith(this.source, this.inbox, this.bus, (text) => this.received(text));
  }

  protected async echo(owner: string): Promise<boolean> {
    await this.send([this.inbox], [owner]);
    return true;
  }

  private readonly send = (channels: readonly string[], texts: readonly string[]): Promise<unknown> =>
    this.ask('SELECT count(pg_notify(channel, text)::text) FROM unnest($1::text[], $2::text[]) AS m (channel, text)', [channels, texts]);
}
