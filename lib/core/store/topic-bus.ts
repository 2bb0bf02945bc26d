import { isSettledWithin } from '../util/clock.js';
import { promised } from '../util/promised.js';
import type { Bus, BusTopic } from './inspector.js';

/** Subscribes a connection to a channel, or ends that. */
export type Subscribe = (verb: 'subscribe' | 'unsubscribe', channel: string) => Promise<unknown>;

/** The parts that differ from store to store. */
export interface TopicBusOptions {
  /** The name of the inbox, and what opens it. */
  readonly connection: string;
  readonly open: Bus['open'];
  /** Milliseconds within which the connection must answer. Default: there is none that has to. */
  readonly requestTimeout?: number;
  /** Resolves to how many connections receive the text. `Infinity`: the store does not say, and who asks waits for the whole time that answers may take. */
  readonly publish: (channel: string, text: string) => Promise<number>;
  /** Processes on other data must not receive each other's messages. Default: a channel is named as its topic. */
  readonly channelOf?: (topic: BusTopic) => string;
}

interface Topic {
  readonly listeners: Set<(text: string) => void>;
  /** Settles when its messages arrive, or cannot. */
  subscribed: Promise<unknown>;
}

/** The listeners of each topic. Messages come over the connection of the inbox: a process in which nothing has lasted receives none. */
export class TopicBus implements Bus {
  readonly connection: string;
  readonly open: Bus['open'];
  private readonly channelOf: (topic: BusTopic) => string;
  /** Topics by channel. */
  private readonly topics = new Map<string, Topic>();
  /** `undefined`: there is no connection that needs to know what is listened to, or it does not answer. */
  private subscribe: Subscribe | undefined;
  /** Settles when the last request to the connection is over: some clients take one at a time. */
  private idle: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: TopicBusOptions) {
    this.connection = options.connection;
    this.open = options.open;
    this.channelOf = options.channelOf ?? String;
  }

  publish(topic: BusTopic, text: string): Promise<number> {
    return this.options.publish(this.channelOf(topic), text);
  }

  async listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const channel = this.channelOf(topic);
    const own = (text: string): void => hear(text);
    const known = this.topics.get(channel) ?? { listeners: new Set(), subscribed: this.send('subscribe', channel) };
    this.topics.set(channel, known);
    known.listeners.add(own);
    await known.subscribed;
    return () => {
      if (!known.listeners.delete(own) || known.listeners.size > 0) return;
      this.topics.delete(channel);
      void this.send('unsubscribe', channel);
    };
  }

  /** From now on messages come over another connection. */
  async connected(subscribe: Subscribe): Promise<void> {
    this.subscribe = subscribe;
    for (const [channel, topic] of this.topics) topic.subscribed = this.send('subscribe', channel);
    await Promise.all([...this.topics.values()].map(({ subscribed }) => subscribed));
  }

  /** A message has arrived. */
  received(channel: string, text: string): void {
    for (const hear of [...(this.topics.get(channel)?.listeners ?? [])]) hear(text);
  }

  isListenedTo(channel: string): boolean {
    return this.topics.has(channel);
  }

  /**
   * A user who may not listen is not seen by operators, but its waiters are woken all the same. A connection that is half open gives no answer, and is
   * not waited for: nothing more is sent over it.
   */
  private send(...request: Parameters<Subscribe>): Promise<unknown> {
    const { subscribe } = this;
    if (!subscribe) return Promise.resolve();
    this.idle = this.idle.then(async () => {
      if (subscribe !== this.subscribe) return;
      const reply = promised(() => subscribe(...request));
      const isSettled = await isSettledWithin(this.options.requestTimeout ?? Infinity, reply);
      if (!isSettled && subscribe === this.subscribe) this.subscribe = undefined;
    });
    return this.idle;
  }
}
