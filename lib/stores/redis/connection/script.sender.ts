import type { RedisClient } from './redis.client.js';
import type { RedisRequest } from './redis.request.js';

export type ScriptCommand = 'evalsha' | 'eval';
export type ScriptArguments = [script: string, keyCount: number, ...keysAndArgs: (string | number)[]];

/** A way to send scripts. */
export interface ScriptSender {
  /** Notes at the request which command of ioredis is sent for it. */
  send(request: RedisRequest, command: ScriptCommand, args: ScriptArguments): Promise<unknown>;
}

/** The used part of a `Command` of ioredis. */
export interface SentCommand {
  name: string;
  args: unknown[];
}

/**
 * Makes a client, or a pipeline of one, that reports the commands that it makes. ioredis keeps what was not answered, and sends it once more over the next
 * connection, or to another node. By then its caller was rejected long ago, and may have asked for the opposite since.
 */
export function reporting<T extends object>(sender: T, report: (command: SentCommand) => void): T {
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

/** Sends each script by itself, at once. */
export class DirectScripts implements ScriptSender {
  private readonly client: RedisClient;
  private request: RedisRequest | undefined;

  constructor(client: RedisClient) {
    this.client = reporting(client, (command) => (this.request!.command = command));
  }

  send(request: RedisRequest, command: ScriptCommand, args: ScriptArguments): Promise<unknown> {
    this.request = request;
    return this.client[command](...args);
  }
}
