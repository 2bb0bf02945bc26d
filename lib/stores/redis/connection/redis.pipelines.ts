import { LockConfigError, StoreError } from '../../../core/model/errors.js';
import { isSettledWithin, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import type { RedisClient } from './redis.client.js';
import { storeErrorOf } from './redis.errors.js';
import { nodesOf } from './redis.slots.js';

const REDIRECTION = /^(MOVED|ASK) \d+ (\S+)/;

type Arguments = [script: string, keyCount: number, ...keysAndArgs: (string | number)[]];

interface Ask {
  readonly command: 'evalsha' | 'eval';
  readonly args: Arguments;
  readonly endsAt: number;
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

interface Answer {
  readonly failure: Error | null;
  readonly reply: unknown;
}

/** The reply to a script whose writes too few replicas have. */
export class Unacknowledged {
  constructor(
    readonly reply: unknown,
    readonly error: StoreError | LockConfigError,
  ) {}
}

/**
 * Sends the scripts of a turn of the event loop in one write for each node, where a client would write each by itself; with `replicas`, with a WAIT behind
 * them. WAIT counts the replicas that have the writes of its own connection, and blocks that connection: what is asked meanwhile gathers and shares the next
 * one.
 */
export class RedisPipelines {
  /** By node, what gathers until it is sent. */
  private readonly gathering = new Map<string, Ask[]>();
  /** A third, so that a script that gathers behind one WAIT and is sent with another one is answered in time. */
  private readonly waitTimeout: number;

  /** @param replicas that must acknowledge what is written; 0: none. */
  constructor(
    private readonly client: RedisClient,
    private readonly requestTimeout: number,
    private readonly replicas = 0,
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
      // With its replicas, as far as the client knows.
      const node = nodesOf(this.client, String(args[2]))?.join() ?? '';
      const gathered = this.gathering.get(node);
      if (gathered) return void gathered.push(ask);
      this.gathering.set(node, [ask]);
      detached(() => void this.sendAll(node));
    });
  }

  private async sendAll(node: string): Promise<void> {
    // What is asked within the same turn goes together.
    await Promise.resolve();
    for (let asks = this.gathering.get(node)!; asks.length > 0; asks = this.gathering.get(node) ?? []) {
      if (this.replicas > 0) this.gathering.set(node, []);
      else this.gathering.delete(node);
      // A caller whose time is over may have asked for the opposite since.
      const time = now();
      const current = asks.filter(({ endsAt }) => time < endsAt);
      for (const ask of asks) if (ask.endsAt <= time) ask.reject(new StoreError('Redis: the time is over.', { transient: true }));
      const sending = this.send(current).catch((error: unknown) => current.forEach((ask) => ask.reject(error)));
      if (this.replicas > 0) await this.over(sending);
    }
    this.gathering.delete(node);
  }

  /** Resolves when these requests are over. A client may never settle what was under way on a connection that broke. */
  private async over(sending: Promise<unknown>): Promise<void> {
    const { client, requestTimeout } = this;
    let broke = (): void => undefined;
    const broken = new Promise<void>((resolve) => (broke = resolve));
    client.on('close', broke);
    await isSettledWithin(requestTimeout, Promise.race([sending, broken]));
    client.off('close', broke);
  }

  private async send(asks: readonly Ask[]): Promise<void> {
    const { client, replicas } = this;
    // The client would send it when it is connected again, which may be too late.
    if (client.status !== 'ready') throw new StoreError('The connection to Redis broke before the request was sent.', { transient: true });
    const [first] = asks as [Ask];
    if (replicas === 0 && asks.length === 1) return first.resolve(client[first.command](...first.args));
    const replies = await this.exec(client, asks);
    const moving = new Map<string, Ask[]>();
    asks.forEach((ask, index) => {
      const { failure } = replies[index]!;
      const [, kind, address = ''] = (client.isCluster && REDIRECTION.exec(failure?.message ?? '')) || [];
      // A Cluster client follows the redirection of a single command only. One that has moved is known to be elsewhere from now on.
      if (kind === 'ASK' && replicas > 0) moving.set(address, [...(moving.get(address) ?? []), ask]);
      else if (kind !== undefined) ask.resolve(this.sendAlone(ask));
      else settle(ask, replies[index]!);
    });
    await Promise.all([...moving].map(([address, some]) => this.sendTo(address, some)));
  }

  /** To the node to which a slot moves: its replicas are to have what it is asked. One that the client did not know, it knows then. */
  private async sendTo(address: string, asks: readonly Ask[]): Promise<void> {
    const node = this.client.nodes!('master').find(({ options }) => `${options?.host}:${options?.port}` === address);
    const time = now();
    if (!node || asks.some(({ endsAt }) => endsAt < time)) return asks.forEach((ask) => ask.resolve(this.sendAlone(ask)));
    const replies = await this.exec(node, asks, true);
    asks.forEach((ask, index) => settle(ask, replies[index]!));
  }

  private async exec(to: RedisClient, asks: readonly Ask[], isAsking = false): Promise<Answer[]> {
    const { client, replicas, waitTimeout } = this;
    const pipeline = to.pipeline();
    // A node has no prefix of its own.
    const prefix = to === client || to.options?.keyPrefix ? '' : (client.options?.keyPrefix ?? '');
    for (const { command, args } of asks) {
      const [script, count, ...rest] = args;
      if (isAsking) pipeline.call('ASKING');
      pipeline[command](script, count, ...(prefix === '' ? rest : rest.map((one, index) => (index < count ? prefix + one : one))));
    }
    if (replicas > 0) pipeline.call('WAIT', replicas, waitTimeout);
    const replies = (await pipeline.exec())!;
    const error = replicas > 0 ? this.shortfallOf(...replies.pop()!) : undefined;
    return asks.map((_, index) => {
      const [failure, reply] = replies[isAsking ? 2 * index + 1 : index]!;
      return { failure, reply: error ? new Unacknowledged(reply, error) : reply };
    });
  }

  private async sendAlone({ command, args, endsAt }: Ask): Promise<unknown> {
    // As above.
    if (now() > endsAt) throw new StoreError('Redis: the key has moved to another node, and the time is over.', { transient: true });
    const reply = await this.client[command](...args);
    const moved = new StoreError('Redis: the key has moved to another node.', { transient: true });
    return this.replicas > 0 ? new Unacknowledged(reply, moved) : reply;
  }

  private shortfallOf(failure: Error | null, count: unknown): Unacknowledged['error'] | undefined {
    const { replicas, waitTimeout } = this;
    if (/unknown command|not supported/i.test(failure?.message ?? '')) {
      return new LockConfigError('redisStore: "replicaAcks" needs the command WAIT, which this server does not have.', { cause: failure });
    }
    if (failure) return storeErrorOf(failure);
    if (Number(count) >= replicas) return undefined;
    const counted = `${Number(count)} of ${replicas} ${replicas === 1 ? 'replica has' : 'replicas have'} it`;
    return new StoreError(`Redis: ${counted} after ${waitTimeout} ms.`, { transient: true, isRefusal: true });
  }
}

function settle(ask: Ask, { failure, reply }: Answer): void {
  if (failure) ask.reject(failure);
  else ask.resolve(reply);
}
