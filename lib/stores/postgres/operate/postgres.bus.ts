import { createHash, randomUUID } from 'node:crypto';
import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { isSettledWithin } from '../../../core/util/clock.js';
import type { PostgresClient } from '../postgres.connection.js';

const CHANNEL = 'distributed_lock:';
/** Bytes of a notification: Postgres allows 7,999. Longer texts go in parts, as `<id>:<parts>:<index>:<part of the text in Base64>`; of equal ones only one would arrive. */
const LONGEST = 7_900;
const PART = 7_800;
/** What a text of 65,536 characters takes, the longest that is read. */
const MOST_PARTS = 34;

interface Topic {
  readonly listeners: Set<(text: string) => void>;
  /** Settles when it is heard, or cannot be. */
  subscribed: Promise<unknown>;
}

/** Messages between processes. They come over the connection of the inbox: a process that has never waited hears none. */
export class PostgresBus implements Bus {
  private readonly topics = new Map<string, Topic>();
  /** A text whose other parts are under way: Postgres delivers the messages of one transaction together, so that there is one at a time. */
  private partial: { readonly head: string; readonly parts: string[] } | undefined;
  private client: PostgresClient | undefined;
  /** Settles when the last statement is over: `pg` takes one at a time. */
  private idle: Promise<unknown> = Promise.resolve();

  /**
   * @param connection the name of the inbox.
   * @param table its quoted name. Processes with another one must not hear each other.
   * @param send sends each text to its channel, in one transaction.
   * @param openInbox resolves to whether it is open.
   */
  constructor(
    readonly connection: string,
    private readonly table: string,
    private readonly requestTimeout: number,
    private readonly send: (channels: readonly string[], texts: readonly string[]) => Promise<unknown>,
    private readonly openInbox: (...log: Parameters<Bus['open']>) => Promise<boolean>,
  ) {}

  async open(...log: Parameters<Bus['open']>): Promise<boolean> {
    let isOpen = false;
    const opening = this.openInbox(...log).then((outcome) => (isOpen = outcome));
    await isSettledWithin(this.requestTimeout, opening);
    return isOpen;
  }

  async listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const channel = this.channelOf(topic);
    const own = (text: string): void => hear(text);
    const known = this.topics.get(channel) ?? { listeners: new Set(), subscribed: this.tell('LISTEN', channel) };
    this.topics.set(channel, known);
    known.listeners.add(own);
    await known.subscribed;
    return () => {
      if (!known.listeners.delete(own) || known.listeners.size > 0) return;
      this.topics.delete(channel);
      void this.tell('UNLISTEN', channel);
    };
  }

  /** Postgres does not say how many have heard it. A process that asks waits for the whole time that answers may take. */
  async publish(topic: BusTopic, text: string): Promise<number> {
    const texts = textsOf(text);
    await this.send(
      texts.map(() => this.channelOf(topic)),
      texts,
    );
    return Infinity;
  }

  /** From now on messages come over this connection. */
  async connected(client: PostgresClient): Promise<void> {
    this.client = client;
    this.partial = undefined;
    for (const [channel, topic] of this.topics) topic.subscribed = this.tell('LISTEN', channel);
    await Promise.all([...this.topics.values()].map(({ subscribed }) => subscribed));
  }

  received(channel: string, payload: string): void {
    const text = this.textOf(payload);
    if (text === undefined) return;
    for (const hear of [...(this.topics.get(channel)?.listeners ?? [])]) hear(text);
  }

  /** The name of a channel has at most 63 bytes. */
  private channelOf(topic: BusTopic): string {
    const { table } = this;
    const isDefault = table.replaceAll('"', '') === 'distributed_lock';
    return CHANNEL + topic + (isDefault ? '' : `:${createHash('sha256').update(table).digest('hex').slice(0, 16)}`);
  }

  /** `undefined`: parts are missing yet. */
  private textOf(payload: string): string | undefined {
    const [, head, count, index, part = ''] = /^([\w-]{36}:(\d{1,3})):(\d{1,3}):(.*)$/s.exec(payload) ?? [];
    if (head === undefined) return payload;
    const { parts } = (this.partial = index === '0' || head !== this.partial?.head ? { head, parts: [] } : this.partial);
    // The rest of a text whose beginning was not heard, or a text of a stranger that is longer than ours.
    if (Number(index) !== parts.length || Number(count) > MOST_PARTS) return payload;
    parts.push(part);
    if (parts.length < Number(count)) return undefined;
    this.partial = undefined;
    return Buffer.from(parts.join(''), 'base64').toString();
  }

  /** A connection that is half open gives no answer, and is not waited for: nothing more is sent over it. */
  private tell(verb: 'LISTEN' | 'UNLISTEN', channel: string): Promise<unknown> {
    const { client } = this;
    if (!client) return Promise.resolve();
    this.idle = this.idle.then(async () => {
      if (client !== this.client) return;
      const isSettled = await isSettledWithin(this.requestTimeout, client.query({ text: `${verb} "${channel}"` }));
      if (!isSettled && client === this.client) this.client = undefined;
    });
    return this.idle;
  }
}

/** The text, or its parts. */
function textsOf(text: string): string[] {
  if (Buffer.byteLength(text) <= LONGEST) return [text];
  const whole = Buffer.from(text).toString('base64');
  const id = randomUUID();
  const count = Math.ceil(whole.length / PART);
  return Array.from({ length: count }, (_, index) => `${id}:${count}:${index}:${whole.slice(index * PART, (index + 1) * PART)}`);
}
