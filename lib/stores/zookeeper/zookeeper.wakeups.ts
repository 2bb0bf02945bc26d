import { randomUUID } from 'node:crypto';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import { TopicBus } from '../../core/store/topic-bus.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { codeOf, NO_NODE, SEQUENTIAL, type Stat } from './zookeeper.client.js';
import type { Step, ZookeeperSession } from './zookeeper.session.js';

/** Milliseconds without a write after which an inbox gets no messages of topics: each process writes its own every ten seconds. */
const DEAD = 60_000;

/**
 * The inbox of this process: a node, with a node below it for each message. The topics that it listens to are its data. One watch tells once that the
 * nodes below have changed; reading their names sets it again. A process that crashes leaves its inbox to a sweep.
 */
export class ZookeeperWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = randomUUID();
  readonly bus: TopicBus;
  private readonly inboxes: string;
  private readonly path: string;
  private readonly topics = new Set<string>();

  constructor(private readonly session: ZookeeperSession) {
    super('ZooKeeper', session.requestTimeout, 'permit its user to read, write, create and delete the nodes of locks');
    this.inboxes = `${session.target.root}/i`;
    this.path = `${this.inboxes}/${this.inbox}`;
    this.bus = new TopicBus({
      connection: this.inbox,
      open: (...log) => this.openForBus(...log),
      requestTimeout: session.requestTimeout,
      publish: (topic, text) => this.publish(topic, text),
    });
  }

  /** The step that sends a message. It fails if the inbox is not there any more. */
  send(inbox: string, text: string): Step {
    return (transaction) => transaction.create(`${this.inboxes}/${inbox}/-`, Buffer.from(text), this.session.target.acl, SEQUENTIAL);
  }

  /** Sends a message to the inbox of each process that listens to the topic. */
  private async publish(topic: string, text: string): Promise<number> {
    const names = await this.session.children(this.inboxes);
    const found = await Promise.all(names.map(async (name) => ({ name, ...(await this.session.data(`${this.inboxes}/${name}`)) })));
    const times = found.map(({ stat }) => Number(stat?.mtime.readBigInt64BE() ?? 0));
    const oldest = Math.max(...times) - DEAD;
    const listening = found.filter((each, index) => times[index]! >= oldest && each.text?.split(' ').includes(topic));
    const sent = await Promise.all(listening.map(({ name }) => this.deliver(name, topic, text)));
    return sent.filter(Boolean).length;
  }

  /** Sends a message by itself. False: there is no such inbox. */
  private async deliver(inbox: string, topic: string, text: string): Promise<boolean> {
    try {
      await this.session.create(`${this.inboxes}/${inbox}/${topic}-`, text, SEQUENTIAL);
      return true;
    } catch (error) {
      if (codeOf(error) !== NO_NODE) throw error;
      return false;
    }
  }

  protected read(text: string): boolean {
    return readMessage(text, (owner, askIn) => void this.wake(owner, askIn));
  }

  /** Writes the inbox, so that it is not taken for that of a dead process. */
  async touch(): Promise<Stat> {
    const data = (): Buffer => Buffer.from([...this.topics].join(' '));
    const write = (): Promise<[Stat]> => this.session.ask<[Stat]>((client, done) => client.setData(this.path, data(), -1, done));
    const [stat] = await write().catch(async (error: unknown) => {
      if (codeOf(error) !== NO_NODE) throw error;
      await this.session.make(this.path);
      return write();
    });
    return stat;
  }

  /** Deletes the inboxes that were written long ago. */
  async sweep(isOld: (stat: Stat) => boolean): Promise<void> {
    for (const name of await this.session.children(this.inboxes)) {
      const path = `${this.inboxes}/${name}`;
      const found = await this.session.data(path);
      if (found && isOld(found.stat)) await this.delete(path);
    }
  }

  async end(): Promise<void> {
    this.close();
    await this.delete(this.path).catch(() => undefined);
  }

  protected connect(): InboxConnection {
    let close!: () => void;
    const ended = new Promise<void>((resolve) => (close = resolve));
    let isOver = false;
    void ended.then(this.session.onBreak(close)).then(() => (isOver = true));
    const look = async (): Promise<void> => {
      if (isOver) return;
      const [names] = await this.session.ask<[string[], Stat]>((client, done) => client.getChildren(this.path, again, done));
      // Deleted before the next look is sent, so that none is read twice.
      for (const name of names.sort((a, b) => numberOf(a) - numberOf(b))) void this.take(name);
    };
    // Also when the inbox was deleted.
    const again = (): void => void look().catch(close);
    const listen = async (): Promise<void> => {
      await this.touch();
      await this.bus.connected((verb, channel) => {
        if (verb === 'subscribe') this.topics.add(channel);
        else this.topics.delete(channel);
        return this.touch();
      });
      await look();
    };
    return { listening: listen(), ended, close };
  }

  protected echo(owner: string): Promise<boolean> {
    return this.deliver(this.inbox, '', owner);
  }

  private async take(name: string): Promise<void> {
    const path = `${this.path}/${name}`;
    const reading = this.session.data(path).catch(() => undefined);
    void this.session.remove(path);
    // If it is not read, the connection breaks, and all waiters ask then.
    const text = (await reading)?.text;
    const topic = name.slice(0, name.lastIndexOf('-'));
    if (text === undefined) return;
    if (topic === '') this.received(text);
    else this.bus.received(topic, text);
  }

  private async delete(path: string): Promise<void> {
    const names = await this.session.children(path);
    await this.session.remove(...names.map((name) => `${path}/${name}`), path);
  }
}

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}
