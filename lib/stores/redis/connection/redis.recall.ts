import type { RedisClient } from './redis.client.js';

/** What is used of a `Command` of ioredis. */
export interface SentCommand {
  name: string;
  args: unknown[];
}

/**
 * The client, for scripts; it tells what it is given. ioredis keeps what a connection that broke has not answered, and by default sends it over the next
 * one: long after the caller was rejected, who may have asked for the opposite since.
 */
export function tellingClient(client: RedisClient, tell: (command: SentCommand) => void): RedisClient {
  const ioredis = client as RedisClient & { sendCommand?(command: SentCommand): unknown };
  if (!ioredis.sendCommand) return client;
  const sendCommand = (command: SentCommand): unknown => {
    tell(command);
    return ioredis.sendCommand!(command);
  };
  // What is a pipeline ioredis does not gather into one with what others send.
  return Object.create(client, { sendCommand: { value: sendCommand }, isPipeline: { value: true } }) as RedisClient;
}

/** From now on it does nothing, whenever it is sent. */
export function recall(command: SentCommand): void {
  command.name = 'ping';
  command.args = [];
}
