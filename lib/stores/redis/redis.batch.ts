import { StoreError } from '../../core/model/errors.js';
import { isForbidden, storeErrorOf, type RedisConnection } from './redis.connection.js';
import { refusalOf } from './redis.keys.js';
import { listOf } from './redis.replies.js';
import type { RedisScript } from './redis.script.js';

type Argument = string | number;

interface Entry {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  readonly decode: (reply: unknown) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends what is asked of one script within a turn of the event loop as one request, whose cost is then shared: the script takes any number of
 * entries and answers each by itself. A lone request does not wait for others.
 */
export class RedisBatch {
  private entries: Entry[] = [];

  /**
   * @param head arguments before those of the entries.
   * @param largest entries in a request: the server does nothing else meanwhile.
   */
  constructor(
    private readonly connection: RedisConnection,
    private readonly script: RedisScript,
    private readonly head: readonly Argument[],
    private readonly largest: number,
  ) {}

  /**
   * Answered or rejected as {@link RedisConnection.request} is, once {@link flush} has been called.
   *
   * @param decode throws what the caller is rejected with, if the reply is none.
   */
  add<T>(keys: readonly string[], args: readonly Argument[], decode: (reply: unknown) => T): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      this.entries.push({ keys, args, decode, resolve, reject });
    }) as Promise<T>;
  }

  flush(): void {
    const { entries, largest } = this;
    if (entries.length === 0) return;
    this.entries = [];
    if (entries.length <= largest) return this.send(entries);
    for (let start = 0; start < entries.length; start += largest) this.send(entries.slice(start, start + largest));
  }

  private send(entries: readonly Entry[]): void {
    const keysAndArgs: Argument[] = [];
    for (const { keys } of entries) for (const key of keys) keysAndArgs.push(key);
    const keyCount = keysAndArgs.length;
    keysAndArgs.push(...this.head);
    for (const { args } of entries) for (const arg of args) keysAndArgs.push(arg);
    this.script
      .run(this.connection, keyCount, keysAndArgs)
      .then((replies) => listOf(replies, entries.length))
      .then(
        (replies) => entries.forEach((entry, index) => settle(entry, replies[index])),
        (error: unknown) => this.failed(entries, error),
      );
  }

  /** A key that the user may not use fails the whole request, before anything of it is done: the others must not suffer. */
  private failed(sent: readonly Entry[], error: unknown): void {
    if (sent.length > 1 && isForbidden(error)) for (const entry of sent) this.send([entry]);
    else for (const { reject } of sent) reject(error);
  }
}

function settle({ keys, decode, resolve, reject }: Entry, reply: unknown): void {
  try {
    if (reply instanceof Error) reject(refusalOf(keys[0] as string, reply));
    else resolve(decode(reply));
  } catch (error) {
    reject(error instanceof StoreError ? error : storeErrorOf(error));
  }
}
