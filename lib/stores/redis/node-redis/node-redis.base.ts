import { EventEmitter } from 'node:events';
import type { RedisClient, RedisPipeline } from '../connection/redis.client.js';

type Argument = string | number;

type Listener = (...args: unknown[]) => void;

/** The commands and events of ioredis that the store uses, over node-redis. It listens to the client only while somebody listens to it. */
export abstract class NodeRedisBase implements RedisClient {
  private readonly events = new EventEmitter().setMaxListeners(0);
  private stopWatching: (() => void) | undefined;

  constructor(private readonly keyPrefix = '') {}

  abstract get status(): string;
  abstract connect(): Promise<unknown>;
  abstract duplicate(): RedisClient;
  /** Sends all of these now, in one write over one connection. */
  protected abstract send(commands: readonly string[][]): Promise<unknown>[];
  /** Passes the events of the client on by {@link emit}. The returned function stops. */
  protected abstract watch(): () => void;

  get options(): { readonly keyPrefix: string; readonly host?: string; readonly port?: number } {
    return { keyPrefix: this.keyPrefix };
  }

  evalsha(sha: string, keyCount: number, ...keysAndArgs: Argument[]): Promise<unknown> {
    return this.sendOne(this.script('EVALSHA', sha, keyCount, keysAndArgs));
  }

  eval(script: string, keyCount: number, ...keysAndArgs: Argument[]): Promise<unknown> {
    return this.sendOne(this.script('EVAL', script, keyCount, keysAndArgs));
  }

  call(command: string, ...args: Argument[]): Promise<unknown> {
    // The only other commands of ours that have a key.
    if (!/^(XADD|PEXPIRE|ZREM)$/i.test(command)) return this.sendOne([command, ...args.map(String)]);
    const [key, ...others] = args.map(String);
    return this.sendOne([command, this.keyPrefix + key, ...others]);
  }

  info(): Promise<unknown> {
    return this.call('INFO');
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.call('PUBLISH', channel, message);
  }

  pubsub(subcommand: 'NUMSUB', channel: string): Promise<unknown> {
    return this.call('PUBSUB', subcommand, channel);
  }

  pipeline(): RedisPipeline {
    const commands: string[][] = [];
    return {
      evalsha: (sha, keyCount, ...keysAndArgs) => commands.push(this.script('EVALSHA', sha, keyCount, keysAndArgs)),
      eval: (script, keyCount, ...keysAndArgs) => commands.push(this.script('EVAL', script, keyCount, keysAndArgs)),
      call: (command, ...args) => commands.push([command, ...args.map(String)]),
      exec: () => Promise.all(this.send(commands).map(settled)),
    };
  }

  on(event: string, listener: Listener): this {
    this.events.on(event, listener);
    this.stopWatching ??= this.watch();
    return this;
  }

  off(event: string, listener: Listener): this {
    this.events.off(event, listener);
    if (this.events.eventNames().length > 0) return this;
    this.stopWatching?.();
    this.stopWatching = undefined;
    return this;
  }

  /** The client is lent, and never closed by us. A duplicate is. */
  disconnect(): void {
    throw new Error('A client that is lent is not closed.');
  }

  async quit(): Promise<void> {
    this.disconnect();
  }

  /** Only a duplicate subscribes. */
  async subscribe(_channel: string): Promise<unknown> {
    throw new Error('A client that is lent does not subscribe.');
  }

  async unsubscribe(_channel: string): Promise<unknown> {
    throw new Error('A client that is lent does not subscribe.');
  }

  protected emit(event: string, ...args: unknown[]): void {
    if (event !== 'error' || this.events.listenerCount('error') > 0) this.events.emit(event, ...args);
  }

  private async sendOne(command: string[]): Promise<unknown> {
    return this.send([command])[0];
  }

  private script(command: string, script: string, keyCount: number, keysAndArgs: readonly Argument[]): string[] {
    const all = keysAndArgs.map((one, index) => (index < keyCount ? this.keyPrefix + String(one) : String(one)));
    return [command, script, String(keyCount), ...all];
  }
}

function settled(reply: Promise<unknown>): Promise<[Error | null, unknown]> {
  return reply.then(
    (value) => [null, value],
    (error: Error) => [error, null],
  );
}
