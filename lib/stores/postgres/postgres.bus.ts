import { createHash, randomUUID } from 'node:crypto';
import type { Bus } from '../../core/store/inspector.js';
import { type Subscribe, TopicBus } from '../../core/store/topic-bus.js';

const CHANNEL = 'distributed_lock:';
/** Bytes of a notification: Postgres allows 7,999. Longer texts go in parts, as `<id>:<parts>:<index>:<part of the text in Base64>`; of equal ones only one would arrive. */
const LONGEST = 7_900;
const PART = 7_800;
/** The parts of a text of 65,536 characters, the longest that is read. */
const MOST_PARTS = 34;

/** Messages between processes on Postgres. */
export class PostgresBus extends TopicBus {
  /** A text whose other parts are under way: Postgres delivers the messages of one transaction together, so that there is one at a time. */
  private partial: { readonly head: string; readonly parts: string[] } | undefined;

  /**
   * @param table its quoted name.
   * @param sendAll sends each text to its channel, in one transaction.
   */
  constructor(
    inbox: string,
    table: string,
    requestTimeout: number,
    sendAll: (channels: readonly string[], texts: readonly string[]) => Promise<unknown>,
    open: Bus['open'],
  ) {
    super({
      connection: inbox,
      open,
      requestTimeout,
      // The name of a channel has at most 63 bytes.
      channelOf(topic) {
        const isDefault = table.replaceAll('"', '') === 'distributed_lock';
        return CHANNEL + topic + (isDefault ? '' : `:${createHash('sha256').update(table).digest('hex').slice(0, 16)}`);
      },
      async publish(channel, text) {
        const texts = textsOf(text);
        await sendAll(
          texts.map(() => channel),
          texts,
        );
        return Infinity;
      },
    });
  }

  override connected(subscribe: Subscribe): Promise<void> {
    this.partial = undefined;
    return super.connected(subscribe);
  }

  override received(channel: string, payload: string): void {
    const text = this.textOf(payload);
    if (text !== undefined) super.received(channel, text);
  }

  /** `undefined`: parts are missing yet. */
  private textOf(payload: string): string | undefined {
    const [, head, count, index, part = ''] = /^([\w-]{36}:(\d{1,3})):(\d{1,3}):(.*)$/s.exec(payload) ?? [];
    if (head === undefined) return payload;
    const { parts } = (this.partial = index === '0' || head !== this.partial?.head ? { head, parts: [] } : this.partial);
    // The rest of a text whose beginning was not received, or a text of another program that is longer than ours.
    if (Number(index) !== parts.length || Number(count) > MOST_PARTS) return payload;
    parts.push(part);
    if (parts.length < Number(count)) return undefined;
    this.partial = undefined;
    return Buffer.from(parts.join(''), 'base64').toString();
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
