import { configError, type LockConfigError, StoreError } from '../../../core/model/errors.js';
import { isSettledWithin } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { isReady, nodeAt, type RedisClient } from './redis.client.js';
import { storeErrorOf } from './redis.errors.js';
import type { RedisRequest, ScriptArguments, ScriptCommand, ScriptSender, SentCommand } from './redis.request.js';

const REDIRECTION = /^(MOVED|ASK) \d+ (\S+)/;

interface Entry {
  readonly request: RedisRequest;
  readonly command: ScriptCommand;
  readonly args: ScriptArguments;
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
 * Sends the scripts of an iteration of the event loop in one write for each node, where a client would write each by itself; with `replicas`, with a WAIT
 * behind them. WAIT counts the replicas that have the writes of its own connection, and blocks that connection: what is asked meanwhile gathers and shares
 * the next one.
 */
class RedisPipelines implements ScriptSender {
  /** Scripts that are not sent yet, by their nodes. */
  private readonly gathering = new Map<string, Entry[]>();
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
  send(request: RedisRequest, command: ScriptCommand, args: ScriptArguments): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const entry = { request, command, args, resolve, reject };
      const nodes = request.nodes?.join() ?? '';
      const gathered = this.gathering.get(nodes);
      if (gathered) return void gathered.push(entry);
      this.gathering.set(nodes, [entry]);
      detached(() => void this.sendAll(nodes));
    });
  }

  private async sendAll(nodes: string): Promise<void> {
    // What is asked within the same iteration goes together.
    await Promise.resolve();
    for (let entries = this.gathering.get(nodes)!; entries.length > 0; entries = this.gathering.get(nodes) ?? []) {
      if (this.replicas > 0) this.gathering.set(nodes, []);
      else this.gathering.delete(nodes);
      // A caller whose time is over may have asked for the opposite since.
      const current = entries.filter(({ request }) => request.list);
      const sending = this.sendTogether(current).catch((error: unknown) => current.forEach((entry) => entry.reject(error)));
      if (this.replicas > 0) await this.over(sending);
    }
    this.gathering.delete(nodes);
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

  /**
   * A Cluster client follows the redirection of a single command only.
   *
   * | the node answers | with `replicas` | without |
   * |---|---|---|
   * | MOVED: the slot is elsewhere, which the client knows from now on | it is sent alone, to be asked again | it is sent alone |
   * | ASK: the slot moves, and the key has gone before | to the next node, whose replicas are to have it; alone, if the client does not know that yet | it is sent alone |
   * | anything else | that is the answer | that is the answer |
   */
  private async sendTogether(entries: readonly Entry[]): Promise<void> {
    const { client, replicas } = this;
    const [first] = entries;
    if (!first) return;
    // The client would send it when it is connected again, which may be too late.
    if (!isReady(client)) throw new StoreError('The connection to Redis broke before the request was sent.', { transient: true });
    if (replicas === 0 && entries.length === 1) return first.resolve(this.sendAlone(first));
    const moving = new Map<string, Entry[]>();
    const answers = await this.exec(client, entries);
    for (const [index, entry] of entries.entries()) {
      const { failure } = answers[index]!;
      const [, kind, address = ''] = (client.isCluster && REDIRECTION.exec(failure?.message ?? '')) || [];
      if (kind === undefined) settle(entry, answers[index]!);
      else if (kind === 'ASK' && replicas > 0) moving.set(address, [...(moving.get(address) ?? []), entry]);
      else entry.resolve(this.sendAfter(entry));
    }
    await Promise.all([...moving].map(([address, some]) => this.sendTo(nodeAt(client, address), some)));
  }

  private async sendTo(node: RedisClient | undefined, entries: readonly Entry[]): Promise<void> {
    const answers = node && entries.every(({ request }) => request.list) ? await this.exec(node, entries, true) : undefined;
    for (const [index, entry] of entries.entries()) {
      if (answers) settle(entry, answers[index]!);
      else entry.resolve(this.sendAfter(entry));
    }
  }

  private async exec(to: RedisClient, entries: readonly Entry[], isAsking = false): Promise<Answer[]> {
    const { client, replicas, waitTimeout } = this;
    const pipeline = to.pipeline();
    let current = entries[0]!.request;
    const scripts = reporting(pipeline, (command) => (current.command = command));
    // A node has no prefix of its own.
    const prefix = to === client || to.options.keyPrefix ? '' : (client.options.keyPrefix ?? '');
    for (const { request, command, args } of entries) {
      const [script, count, ...rest] = args;
      if (isAsking) pipeline.call('ASKING');
      current = request;
      scripts[command](script, count, ...(prefix === '' ? rest : rest.map((one, index) => (index < count ? prefix + one : one))));
    }
    if (replicas > 0) pipeline.call('WAIT', replicas, waitTimeout);
    const replies = (await pipeline.exec())!;
    const error = replicas > 0 ? this.shortfallOf(...replies.pop()!) : undefined;
    return entries.map((_, index) => {
      const [failure, reply] = replies[isAsking ? 2 * index + 1 : index]!;
      return { failure, reply: error ? new Unacknowledged(reply, error) : reply };
    });
  }

  private sendAlone({ request, command, args }: Entry): Promise<unknown> {
    return reporting(this.client, (sent) => (request.command = sent))[command](...args);
  }

  /** Where the node of the key is another one. */
  private async sendAfter(entry: Entry): Promise<unknown> {
    // As above.
    if (!entry.request.list) throw new StoreError('Redis: the key has moved to another node, and the time is over.', { transient: true });
    const reply = await this.sendAlone(entry);
    const moved = new StoreError('Redis: the key has moved to another node.', { transient: true });
    return this.replicas > 0 ? new Unacknowledged(reply, moved) : reply;
  }

  private shortfallOf(failure: Error | null, count: unknown): Unacknowledged['error'] | undefined {
    const { replicas, waitTimeout } = this;
    if (/unknown command|not supported/i.test(failure?.message ?? '')) {
      return configError('STORE', 'redisStore: "replicaAcks" needs the command WAIT, which this server does not have.', { cause: failure });
    }
    if (failure) return storeErrorOf(failure);
    if (Number(count) >= replicas) return undefined;
    const counted = `${Number(count)} of ${replicas} ${replicas === 1 ? 'replica has' : 'replicas have'} it`;
    return new StoreError(`Redis: ${counted} after ${waitTimeout} ms.`, { transient: true, isRefusal: true });
  }
}

export function senderTo(client: RedisClient, requestTimeout: number, replicas: number): ScriptSender {
  if (client.isCluster || replicas > 0) return new RedisPipelines(client, requestTimeout, replicas);
  return { send: (_, command, args) => client[command](...args) };
}

/**
 * Makes a client, or a pipeline of one, that reports the commands that it makes. A Cluster client sends what was not answered once more, to another node.
 * By then its caller was rejected long ago, and may have asked for the opposite since.
 */
function reporting<T extends object>(sender: T, report: (command: SentCommand) => void): T {
  const ioredis = sender as T & { sendCommand?(...args: unknown[]): unknown };
  if (!ioredis.sendCommand) return sender;
  const sendCommand = (command: SentCommand, ...others: unknown[]): unknown => {
    report(command);
    return ioredis.sendCommand!(command, ...others);
  };
  // What is a pipeline ioredis does not gather into one with what others send.
  return Object.create(sender, { sendCommand: { value: sendCommand }, isPipeline: { value: true } }) as T;
}

/** Lets the command do nothing, whenever it is sent from now on. */
export function recall(command: SentCommand): void {
  command.name = 'ping';
  command.args = [];
}

function settle(entry: Entry, { failure, reply }: Answer): void {
  if (failure) entry.reject(failure);
  else entry.resolve(reply);
}
