import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';
import type { ZookeeperSession } from '../zookeeper.session.js';
import type { ZookeeperWakeUps } from '../zookeeper.wakeups.js';

/** Milliseconds without a write after which an inbox gets no messages: each process writes its own every ten seconds. */
const DEAD = 60_000;

/** Messages between processes on ZooKeeper: one to the inbox of each process that listens. */
export class ZookeeperBus extends TopicBus {
  constructor(
    private readonly own: ZookeeperWakeUps,
    private readonly session: ZookeeperSession,
    open: Bus['open'],
  ) {
    super(own.inbox, open, session.requestTimeout);
  }

  async publish(topic: BusTopic, text: string): Promise<number> {
    const { own, session } = this;
    const names = await session.children(own.inboxes);
    const found = await Promise.all(names.map(async (name) => ({ name, ...(await session.data(`${own.inboxes}/${name}`)) })));
    const times = found.map(({ stat }) => Number(stat?.mtime.readBigInt64BE() ?? 0));
    const oldest = Math.max(...times) - DEAD;
    const listening = found.filter((each, index) => times[index]! >= oldest && each.text?.split(' ').includes(topic));
    const sent = await Promise.all(listening.map(({ name }) => own.deliver(name, topic, text)));
    return sent.filter(Boolean).length;
  }
}
