import { messageOf, StoreError } from '../../core/model/errors.js';
import type { InboxConnection } from '../../core/store/inbox.js';
import { after } from '../../core/util/clock.js';
import type { PostgresBus } from './postgres.bus.js';
import type { PostgresClient } from './postgres.connection.js';
import { sqlStateOf, storeErrorOf } from './postgres.errors.js';

const STANDBY = '25006';
/** Milliseconds until a connection that does not end is destroyed. */
const GOODBYE = 1000;

/** Listens to a channel, as `sql.listen` of postgres.js does. It resolves when it listens, to what ends that: a function, or an object with `unlisten`. */
export type PostgresListen = (channel: string, received: (payload: string) => void) => Promise<(() => unknown) | PostgresListening>;

/** The object to which `sql.listen` of postgres.js resolves. */
export interface PostgresListening {
  /** Ends it. */
  unlisten(): unknown;
}

/** The means by which an inbox listens. */
export interface ListenSource {
  readonly listen: PostgresListen;
  /** Ends all at once. Without it, each channel is left. */
  close?(): void;
}

/** Opens one. It calls `ended` when nothing arrives any more. */
export type OpenSource = (ended: () => void) => Promise<ListenSource>;

/** Over a connection of its own. Nothing else is sent over it: it is notified while it is idle. */
export function overClient(connect: () => Promise<PostgresClient>): OpenSource {
  return async (ended) => {
    const client = await connect();
    const channels = new Map<string, (payload: string) => void>();
    client.on('error', ended);
    client.on('end', ended);
    client.on('notification', (message) => {
      const { channel, payload = '' } = message as { readonly channel: string; readonly payload?: string };
      channels.get(channel)?.(payload);
    });
    let connected: Promise<unknown> | undefined;
    return {
      async listen(channel, received) {
        await (connected ??= client.connect().then(() => client.unref?.()));
        channels.set(channel, received);
        await client.query({ text: `LISTEN "${channel}"` });
        return () => client.query({ text: `UNLISTEN "${channel}"` });
      },
      close() {
        // One that is half open does not end by itself.
        const timer = after(GOODBYE, () => client.connection?.stream?.destroy()).unref();
        client
          .end()
          .catch(() => undefined)
          .finally(() => clearTimeout(timer));
      },
    };
  };
}

/**
 * Makes the listening connection of an inbox.
 *
 * @param received is called with each message to the inbox.
 */
export function listenWith(open: OpenSource, inbox: string, bus: PostgresBus, received: (text: string) => void): InboxConnection {
  const stops = new Map<string, () => unknown>();
  let source: ListenSource | undefined;
  let isClosed = false;
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));

  const leave = async (channel: string): Promise<void> => {
    const stop = stops.get(channel);
    stops.delete(channel);
    await stop?.();
  };
  const join = async ({ listen }: ListenSource, channel: string, hear: (payload: string) => void): Promise<void> => {
    const stop = await listen(channel, hear);
    stops.set(channel, typeof stop === 'function' ? stop : () => stop.unlisten());
    if (isClosed) await leave(channel);
  };
  const close = (): void => {
    const open = source;
    source = undefined;
    isClosed = true;
    end();
    if (open?.close) open.close();
    else for (const channel of stops.keys()) leave(channel).catch(() => undefined);
  };
  const begin = async (): Promise<void> => {
    const own = (source = await open(end));
    // Closed while `pg` was loaded.
    if (isClosed) return close();
    await join(own, inbox, received);
    await bus.connected((verb, channel) =>
      verb === 'subscribe' ? join(own, channel, (payload) => bus.received(channel, payload)) : leave(channel),
    );
  };
  const listening = begin().catch((error: unknown) => {
    // Nobody is notified there, until it is promoted: that is no outage.
    throw sqlStateOf(error) === STANDBY ? new StoreError(`Postgres: ${messageOf(error)}`, { transient: false }) : storeErrorOf(error);
  });
  return { listening, ended, close };
}
