import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';

/** Messages between processes on ZooKeeper: one to the inbox of each process that listens. */
export class ZookeeperBus extends TopicBus {
  /** @param publish resolves to how many inboxes have got the message. Those of crashed processes are among them, until they are swept. */
  constructor(
    inbox: string,
    open: Bus['open'],
    requestTimeout: number,
    readonly publish: (topic: BusTopic, text: string) => Promise<number>,
  ) {
    super(inbox, open, requestTimeout);
  }
}
