import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';

/** Messages between processes on etcd: each topic is a key, whose puts are watched. */
export class EtcdBus extends TopicBus {
  /** @param put changes the key of a topic. */
  constructor(
    inbox: string,
    open: Bus['open'],
    requestTimeout: number,
    private readonly put: (topic: BusTopic, text: string) => Promise<unknown>,
  ) {
    super(inbox, open, requestTimeout);
  }

  /** etcd does not say how many have received it. A process that asks waits for the whole time that answers may take. */
  async publish(topic: BusTopic, text: string): Promise<number> {
    await this.put(topic, text);
    return Infinity;
  }
}
