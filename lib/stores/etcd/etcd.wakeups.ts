import { randomUUID } from 'node:crypto';
import type { StoreError } from '../../core/model/errors.js';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import { TopicBus } from '../../core/store/topic-bus.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { base64, endOf, fromBase64, type EtcdClient } from './etcd.client.js';

/** A message of a watch. */
interface Watched {
  readonly created?: boolean;
  readonly events?: readonly { readonly kv: { readonly key: string; readonly value?: string } }[];
}

/** The inbox of this process: each put of a key that begins with its name is a message. One stream watches it, and what goes to all processes. */
export class EtcdWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = randomUUID();
  readonly bus: TopicBus;
  private readonly own: string;
  private readonly toAll: string;

  constructor(
    private readonly client: EtcdClient,
    prefix: string,
  ) {
    super('etcd', client.requestTimeout, 'permit its user to read the whole prefix');
    this.own = `${prefix}i/${this.inbox}/`;
    this.toAll = `${prefix}b/`;
    // Each topic is a key, whose puts are watched.
    this.bus = new TopicBus({
      connection: this.inbox,
      open: (...log) => this.openForBus(...log),
      requestTimeout: client.requestTimeout,
      publish: (topic, text) => this.put(this.toAll + topic, text).then(() => Infinity),
    });
  }

  protected read(text: string): boolean {
    return readMessage(text, (owner, askIn) => void this.wake(owner, askIn));
  }

  protected connect(): InboxConnection {
    const watches = [this.own, this.toAll].map((start) =>
      JSON.stringify({ create_request: { key: base64(start), range_end: endOf(start), filters: ['NODELETE'] } }),
    );
    let created = 0;
    let listen!: () => void;
    let fail!: (error: StoreError) => void;
    let end!: (error: StoreError) => void;
    const listening = new Promise<void>((resolve, reject) => ([listen, fail] = [resolve, reject]));
    const ended = new Promise<StoreError>((resolve) => (end = resolve));
    const close = this.client.watch(
      watches.join('\n'),
      ({ created: isCreated, events = [] }: Watched) => {
        if (isCreated && ++created === watches.length) listen();
        for (const { kv } of events) this.heard(fromBase64(kv.key), fromBase64(kv.value ?? ''));
      },
      (error) => {
        fail(error);
        end(error);
      },
    );
    return { listening, ended, close };
  }

  protected async echo(owner: string): Promise<boolean> {
    await this.put(`${this.own}echo`, owner);
    return true;
  }

  private heard(key: string, text: string): void {
    if (key.startsWith(this.own)) this.received(text);
    else this.bus.received(key.slice(this.toAll.length), text);
  }

  private put(key: string, text: string): Promise<unknown> {
    return this.client.ask('/v3/kv/put', { key: base64(key), value: base64(text) });
  }
}
