import type { Redis } from 'ioredis';
import { PROCESSES } from './model.steps.js';

const MARK = 'mark';

/** Listens to the inboxes of all processes that are alive. */
export class Ear {
  private messages: [string, string][] = [];
  private marks = 0;

  constructor(
    private readonly subscriber: Redis,
    private readonly redis: Redis,
  ) {
    subscriber.on('message', (channel, owner) => this.messages.push([channel, owner]));
  }

  async turn(inbox: string, on: boolean): Promise<void> {
    await (on ? this.subscriber.subscribe(inbox) : this.subscriber.unsubscribe(inbox));
  }

  async start(): Promise<void> {
    await this.subscriber.subscribe(MARK, ...PROCESSES);
    this.messages = [];
  }

  /** All that was said so far: a mark behind it has arrived. */
  async heard(): Promise<[string, string][]> {
    const mark = String(++this.marks);
    const arrived = new Promise<void>((resolve) => {
      const listener = (channel: string, text: string): void => {
        if (channel !== MARK || text !== mark) return;
        this.subscriber.off('message', listener);
        resolve();
      };
      this.subscriber.on('message', listener);
    });
    await this.redis.publish(MARK, mark);
    await arrived;
    return this.messages.splice(0).filter(([channel]) => channel !== MARK);
  }
}
