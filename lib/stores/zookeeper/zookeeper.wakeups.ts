import { randomUUID } from 'node:crypto';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import type { BusTopic } from '../../core/store/inspector.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { ZookeeperBus } from './operate/zookeeper.bus.js';
import { codeOf, NO_NODE, SEQUENTIAL, type Stat } from './zookeeper.client.js';
import type { Step, ZookeeperSession } from './zookeeper.session.js';

/**
 * The inbox of this process: a node, with a node below it for each message. The topics that it listens to are its data. One watch tells once that the
 * nodes below have changed; reading their names sets it again. A process that crashes leaves its inbox to a sweep.
 */
export class ZookeeperWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = randomUUID();
  readonly bus: ZookeeperBus;
  private readonly inboxes: string;
  private readonly path: string;
  private readonly topics = new Set<string>();

  constructor(private readonly session: ZookeeperSession) {
    super('ZooKeeper', session.requestTimeout, 'permit its user to read, write, create and delete the nodes of locks');
    this.inboxes = `${session.place.root}/i`;
    this.path = `${this.inboxes}/${this.inbox}`;
    this.bus = new ZookeeperBus(
      this.inbox,
      (...log) => this.openForBus(...log),
      session.requestTimeout,
      (topic, text) => this.publish(topic, text),
    );
  }

  /** The step that sends a message. It fails if the inbox is not there any more. */
  send(inbox: string, text: string): Step {
    return (transaction, acls) => transaction.create(`${this.inboxes}/${inbox}/-`, Buffer.from(text), acls, SEQUENTIAL);
  }

  received(text: string): void {
    if (!readMessage(text, (owner, askIn) => this.wake(owner, askIn))) this.dropped();
  }

  /** Writes the inbox, so that no sweep takes it for that of a dead process. */
  async touch(): Promise<Stat> {
    const data = Buffer.from([...this.topics].join(' '));
    const write = (): Promise<[Stat]> => this.session.ask<[Stat]>((client, done) => client.setData(this.path, data, -1, done));
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
      const found = await this.session.data(`${this.inboxes}/${name}`);
      if (found && isOld(found.stat)) await this.session.remove(`${this.inboxes}/${name}`);
    }
  }

  async end(): Promise<void> {
    this.close();
    await this.session.remove(this.path).catch(() => undefined);
  }

  protected connect(): InboxConnection {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const stop = this.session.onBreak(() => end());
    let isOver = false;
    const look = async (): Promise<void> => {
      if (isOver) return;
      const [names] = await this.session.ask<[string[], Stat]>((client, done) => client.getChildren(this.path, again, done));
      // Deleted before the next look is sent, so that none is read twice.
      for (const name of names.sort((a, b) => numberOf(a) - numberOf(b))) void this.take(name);
    };
    // Also when the inbox was deleted.
    const again = (): void => void look().catch(end);
    const listen = async (): Promise<void> => {
      await this.touch();
      await this.bus.connected((verb, channel) => {
        if (verb === 'subscribe') this.topics.add(channel);
        else this.topics.delete(channel);
        return this.touch();
      });
      await look();
    };
    const close = (): void => {
      isOver = true;
      stop();
      end();
    };
    return { listening: listen(), ended, close };
  }

  protected async echo(owner: string): Promise<boolean> {
    return (await this.deliver(this.inbox, '', owner)) === 1;
  }

  private async take(name: string): Promise<void> {
    const path = `${this.path}/${name}`;
    const reading = this.session.data(path);
    void this.session.ask<[]>((client, done) => client.remove(path, -1, done)).catch(() => undefined);
    // If it is not read, the connection breaks, and all waiters ask then.
    const text = (await reading.catch(() => undefined))?.text;
    const topic = name.slice(0, name.lastIndexOf('-'));
    if (text === undefined) return;
    if (topic === '') this.received(text);
    else this.bus.received(topic, text);
  }

  private async publish(topic: BusTopic, text: string): Promise<number> {
    const names = await this.session.children(this.inboxes);
    const sent = await Promise.all(
      names.map(async (name) => {
        const topics = (await this.session.data(`${this.inboxes}/${name}`))?.text.split(' ');
        return topics?.includes(topic) ? this.deliver(name, topic, text) : 0;
      }),
    );
    return sent.reduce<number>((sum, count) => sum + count, 0);
  }

  /** How many processes have an inbox of this name. */
  private async deliver(inbox: string, topic: string, text: string): Promise<0 | 1> {
    try {
      await this.session.create(`${this.inboxes}/${inbox}/${topic}-`, text, SEQUENTIAL);
      return 1;
    } catch (error) {
      if (codeOf(error) === NO_NODE) return 0;
      throw error;
    }
  }
}

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}
