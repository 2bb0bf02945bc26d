import { messageOf, StoreError } from '../../core/model/errors.js';
import type { InboxConnection } from '../../core/store/inbox.js';
import { after, inTime } from '../../core/util/clock.js';
import type { PostgresBus } from './operate/postgres.bus.js';
import type { PostgresClient } from './postgres.connection.js';
import { late, sqlStateOf, storeErrorOf } from './postgres.errors.js';

const STANDBY = '25006';
/** Milliseconds until a connection that does not end is destroyed. */
const GOODBYE = 1000;

interface Notification {
  readonly channel: string;
  readonly payload?: string;
}

/** The connection that listens. Nothing else is sent over it: it is notified while it is idle. */
export class PostgresListener implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<void>;
  private client: PostgresClient | undefined;
  private isClosed = false;
  private end: () => void = () => undefined;

  /** @param received is called with each message to the inbox. */
  constructor(
    connect: () => Promise<PostgresClient>,
    private readonly requestTimeout: number,
    private readonly inbox: string,
    private readonly bus: PostgresBus,
    private readonly received: (text: string) => void,
  ) {
    this.ended = new Promise((resolve) => (this.end = resolve));
    this.listening = this.open(connect);
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

  private async open(connect: () => Promise<PostgresClient>): Promise<void> {
    try {
      const client = await connect();
      // Closed while `pg` was loaded.
      if (this.isClosed) return;
      this.client = client;
      client.on('error', () => this.end());
      client.on('end', () => this.end());
      client.on('notification', (message) => {
        const { channel, payload = '' } = message as Notification;
        if (channel === this.inbox) this.received(payload);
        else this.bus.received(channel, payload);
      });
      await this.inTime(client.connect());
      client.unref?.();
      await this.inTime(client.query({ text: `LISTEN ${this.inbox}` }));
      await this.bus.connected((verb, channel) => client.query({ text: `${verb === 'subscribe' ? 'LISTEN' : 'UNLISTEN'} "${channel}"` }));
    } catch (error) {
      // Nobody is notified there, until it is promoted: that is no outage.
      throw sqlStateOf(error) === STANDBY ? new StoreError(`Postgres: ${messageOf(error)}`, { transient: false }) : storeErrorOf(error);
    }
  }

  private inTime(work: Promise<unknown>): Promise<unknown> {
    return inTime(this.requestTimeout, work, () => late(this.requestTimeout));
  }
}
