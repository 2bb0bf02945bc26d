import type { Bus, BusTopic } from '../../../core/store/inspector.js';

/** Begins a message of a topic. No owner has it. */
const MARK = '\u0001';

/** What it needs of the inboxes. */
interface Post {
  readonly inbox: string;
  readonly isOpen: boolean;
  open(...log: Parameters<Bus['open']>): Promise<void>;
  /** Sends a text to each open inbox, and returns how many there are. */
  tellAll(text: string): number;
}

/** Messages between processes. They come to the inbox of a process: one that has never waited hears none. */
export class FileBus implements Bus {
  private readonly listeners = new Set<{ readonly topic: BusTopic; readonly hear: (text: string) => void }>();

  constructor(private readonly post: Post) {}

  get connection(): string {
    return this.post.inbox;
  }

  async open(...log: Parameters<Bus['open']>): Promise<boolean> {
    await this.post.open(...log);
    return this.post.isOpen;
  }

  listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const listener = { topic, hear };
    this.listeners.add(listener);
    return Promise.resolve(() => void this.listeners.delete(listener));
  }

  async publish(topic: BusTopic, text: string): Promise<number> {
    return this.post.tellAll(`${MARK}${topic}\n${text}`);
  }

  /** Whether the text is one of a topic. */
  received(text: string): boolean {
    if (!text.startsWith(MARK)) return false;
    const end = text.indexOf('\n');
    const [topic, content] = [text.slice(MARK.length, end), text.slice(end + 1)];
    for (const each of [...this.listeners]) if (each.topic === topic) each.hear(content);
    return true;
  }
}
