import { messageOf } from '../../core/model/errors.js';
import type { InboxConnection } from '../../core/store/inbox.js';
import { after, idle, inTime } from '../../core/util/clock.js';
import type { PostgresBus } from './operate/postgres.bus.js';
import type { PostgresClient } from './postgres.connection.js';
import { late, sqlStateOf, storeErrorOf } from './postgres.errors.js';

const STANDBY = '25006';
/** Milliseconds until a connection that does not end is cut. */
const GOODBYE = 1000;

interface Notification {
  readonly channel: string;
  readonly payload?: string;
}

interface Ears {
  received(text: string): void;
  listens(): void;
  /** The server is a standby, which can tell nobody anything. */
  refused(reason: string): void;
}

/** The connection that listens. Nothing else is sent over it: it hears what arrives while it is idle. */
export class PostgresListener implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<void>;
  private client: PostgresClient | undefined;
  private isClosed = false;
  private end: () => void = () => undefined;

  /** @param pause milliseconds before it connects. */
  constructor(
    connect: () => Promise<PostgresClient>,
    private readonly requestTimeout: number,
    pause: number,
    inbox: string,
    bus: PostgresBus,
    ears: Ears,
  ) {
    this.ended = new Promise((resolve) => (this.end = resolve));
    this.listening = this.open(connect, pause, inbox, bus, ears);
  }

  close(): void {
    this.isClosed = true;
    this.end();
    const { client } = this;
    this.client = undefined;
    if (!client) return;
    // One that is half open does not end by itself.
    const timer = after(GOODBYE, () => client.connection?.stream?.destroy()).unref();
    client
      .end()
      .catch(() => undefined)
      .finally(() => clearTimeout(timer));
  }

  private async open(connect: () => Promise<PostgresClient>, pause: number, inbox: string, bus: PostgresBus, ears: Ears): Promise<void> {
    if (pause > 0) await idle(pause);
    try {
      if (this.isClosed) return;
      const client = await connect();
      // Closed while `pg` was loaded.
      if (this.isClosed) return;
      this.client = client;
      client.on('error', () => this.end());
      client.on('end', () => this.end());
      client.on('notification', (message) => {
        const { channel, payload = '' } = message as Notification;
        if (channel === inbox) ears.received(payload);
        else bus.received(channel, payload);
      });
      await this.inTime(client.connect());
      client.unref?.();
      await this.inTime(client.query({ text: `LISTEN ${inbox}` }));
      ears.listens();
      await bus.connected((verb, channel) => client.query({ text: `${verb === 'subscribe' ? 'LISTEN' : 'UNLISTEN'} "${channel}"` }));
    } catch (error) {
      if (sqlStateOf(error) === STANDBY) ears.refused(messageOf(error));
      throw storeErrorOf(error);
    }
  }

  private inTime(work: Promise<unknown>): Promise<unknown> {
    return inTime(this.requestTimeout, work, () => late(this.requestTimeout));
  }
}
