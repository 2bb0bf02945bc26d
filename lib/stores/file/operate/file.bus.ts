import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';

/** Begins a message of a topic. No owner has it. */
const MARK = '\u0001';

/** Messages between processes by their directories. */
export class FileBus extends TopicBus {
  /** @param sendToAll sends a text to each open inbox, and returns how many there are. */
  constructor(
    inbox: string,
    open: Bus['open'],
    private readonly sendToAll: (text: string) => number,
  ) {
    super(inbox, open, Infinity);
  }

  async publish(topic: BusTopic, text: string): Promise<number> {
    return this.sendToAll(`${MARK}${topic}\n${text}`);
  }

  /** Whether the text is one of a topic. */
  takes(text: string): boolean {
    if (!text.startsWith(MARK)) return false;
    const end = text.indexOf('\n');
    this.received(text.slice(MARK.length, end), text.slice(end + 1));
    return true;
  }
}
