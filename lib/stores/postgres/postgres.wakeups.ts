import { randomBytes } from 'node:crypto';
import { Inbox, type InboxConnection, type Tell } from '../../core/store/inbox.js';
import { after } from '../../core/util/clock.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { PostgresBus } from './operate/postgres.bus.js';
import type { PostgresClient, Row } from './postgres.connection.js';
import { PostgresListener } from './postgres.listener.js';

/** Milliseconds after the last wait until it is closed: a database that sleeps when nobody is connected could never do so. */
const IDLE = 300_000;
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;

/** The inbox of this process on Postgres: a channel, on one connection that only listens. */
export class PostgresWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = `distributed_lock_${randomBytes(8).toString('hex')}`;
  readonly bus: PostgresBus;
  private warn: Tell | undefined;
  /** How often in a row the server was a standby. */
  private refusals = 0;
  private waiting = 0;
  private idle: NodeJS.Timeout | undefined;
  /** Whether it is for operators, too. */
  private isKept = false;

  /**
   * @param connect makes the connection that listens.
   * @param ask sends over the connections that also release. A pooler may deliver what arrives at the listening one to nobody.
   */
  constructor(
    private readonly connectClient: () => Promise<PostgresClient>,
    private readonly ask: (text: string, values: readonly unknown[]) => Promise<readonly Row[]>,
    private readonly timeout: number,
    table: string,
  ) {
    super('Postgres', timeout, 'listen over another connection');
    this.bus = new PostgresBus(this.inbox, table, timeout, this.send, (...log) => {
      this.isKept = true;
      return this.openForBus(...log);
    });
  }

  override open(warn: Tell, debug?: Tell): Promise<void> {
    this.warn ??= warn;
    // A caller may get its key before it is open.
    if (this.waiting === 0) this.rest();
    return super.open(warn, debug);
  }

  override listen(owner: string, wake: (askIn?: number) => void): () => void {
    clearTimeout(this.idle);
    this.waiting++;
    const stop = super.listen(owner, wake);
    let isOver = false;
    return () => {
      stop();
      if (isOver) return;
      isOver = true;
      if (--this.waiting === 0) this.rest();
    };
  }

  private rest(): void {
    clearTimeout(this.idle);
    this.idle = after(IDLE, () => {
      if (!this.isKept) this.close();
    }).unref();
  }

  override close(): void {
    super.close();
    clearTimeout(this.idle);
    this.warn = undefined;
    this.refusals = 0;
    this.isKept = false;
  }

  received(text: string): void {
    if (!readMessage(text, (owner, askIn) => this.wake(owner, askIn))) this.dropped();
  }

  protected connect(): InboxConnection {
    const pause = this.refusals === 0 ? 0 : Math.min(FIRST_PAUSE * 2 ** (this.refusals - 1), LONGEST_PAUSE);
    return new PostgresListener(this.connectClient, this.timeout, pause, this.inbox, this.bus, {
      received: (text) => this.received(text),
      listens: () => (this.refusals = 0),
      refused: (reason) => {
        if (this.refusals++ === 0) this.warn?.(`Postgres waiters cannot be woken for now and poll instead: ${reason}.`);
      },
    });
  }

  protected async echo(owner: string): Promise<boolean> {
    await this.send([this.inbox], [owner]);
    return true;
  }

  private readonly send = (channels: readonly string[], texts: readonly string[]): Promise<unknown> =>
    this.ask('SELECT count(pg_notify(channel, text)::text) FROM unnest($1::text[], $2::text[]) AS m (channel, text)', [channels, texts]);
}
