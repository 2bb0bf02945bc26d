import { LockConfigError, StoreError } from '../../core/model/errors.js';
import { now } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import type { RedisClient } from './redis.connection.js';
import { storeErrorOf } from './redis.errors.js';

type Arguments = [script: string, keyCount: number, ...keysAndArgs: (string | number)[]];

interface Ask {
  readonly command: 'evalsha' | 'eval';
  readonly args: Arguments;
  readonly endsAt: number;
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** The reply to a script whose writes too few replicas have. */
export class Unacknowledged {
  constructor(
    readonly reply: unknown,
    readonly error: StoreError | LockConfigError,
  ) {}
}

/**
 * Sends scripts in one write with a WAIT behind them. WAIT counts the replicas that have the writes of its own connection, and blocks that connection:
 * scripts that are sent meanwhile gather and share the next WAIT.
 */
export class RedisAcks {
  /** By lane, what gathers while a WAIT is pending. A lane is the slot of a key on Cluster, where each node has its own connection. */
  private readonly gathering = new Map<number, Ask[]>();
  /** A third, so that a script that gathers behind one WAIT and is sent with another one is answered in time. */
  private readonly waitTimeout: number;

  constructor(
    private readonly client: RedisClient,
    private readonly replicas: number,
    private readonly requestTimeout: number,
  ) {
    this.waitTimeout = Math.ceil(requestTimeout / 3);
  }

  /** Resolves to the reply, or to an {@link Unacknowledged} one. */
  evalsha(...args: Arguments): Promise<unknown> {
    return this.ask('evalsha', args);
  }

  eval(...args: Arguments): Promise<unknown> {
    return this.ask('eval', args);
  }

  private ask(command: Ask['command'], args: Arguments): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ask = { command, args, endsAt: now() + this.requestTimeout, resolve, reject };
      const gathered = this.gathering.get(0);
      if (gathered) return void gathered.push(ask);
      this.gathering.set(0, [ask]);
      detached(() => void this.sendAll(0));
    });
  }

  private async sendAll(lane: number): Promise<void> {
    // What is asked within the same turn goes together.
    await Promise.resolve();
    for (let asks = this.gathering.get(lane)!; asks.length > 0; asks = this.gathering.get(lane)!) {
      this.gathering.set(lane, []);
      // A caller whose time is over may have asked for the opposite since.
      const current = asks.filter(({ endsAt }) => now() < endsAt);
      await this.send(current).catch((error: unknown) => current.forEach((ask) => ask.reject(error)));
    }
    this.gathering.delete(lane);
  }

  private async send(asks: readonly Ask[]): Promise<void> {
    const { client, replicas, waitTimeout } = this;
    // The client would send it when it is connected again, which may be too late.
    if (client.status !== 'ready') throw new StoreError('The connection to Redis broke before the request was sent.', { transient: true });
    const pipeline = client.pipeline();
    for (const { command, args } of asks) pipeline[command](...args);
    pipeline.call('WAIT', replicas, waitTimeout);
    const replies = (await pipeline.exec())!;
    const error = this.shortfallOf(...replies[asks.length]!);
    asks.forEach((ask, index) => {
      const [failure, reply] = replies[index]!;
      if (failure) ask.reject(failure);
      else ask.resolve(error ? new Unacknowledged(reply, error) : reply);
    });
  }

  private shortfallOf(failure: Error | null, count: unknown): Unacknowledged['error'] | undefined {
    const { replicas, waitTimeout } = this;
    if (/unknown command|not supported/i.test(failure?.message ?? '')) {
      return new LockConfigError('redisStore: "replicaAcks" needs the command WAIT, which this server does not have.', { cause: failure });
    }
    if (failure) return storeErrorOf(failure);
    if (Number(count) >= replicas) return undefined;
    const counted = `${Number(count)} of ${replicas} ${replicas === 1 ? 'replica has' : 'replicas have'} it`;
    return new StoreError(`Redis: ${counted} after ${waitTimeout} ms.`, { transient: true });
  }
}
