import { unsent, type RedisConnection } from './redis.connection.js';
import { refusalOf } from './redis.keys.js';
import type { RedisScript } from './redis.script.js';

type Argument = string | number;

interface Entry<Reply> {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  readonly isAbandoned: (() => boolean) | undefined;
  readonly decode: (reply: Reply) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends what is asked of one script within a turn of the event loop as one request, whose cost is then shared: the script takes any number of
 * entries and answers each by itself. A lone request does not wait for others.
 */
export class RedisBatch<Reply> {
  private entries: Entry<Reply>[] = [];

  /**
   * @param head arguments before those of the entries.
   * @param largest entries in a request: the server does nothing else meanwhile.
   */
  constructor(
    private readonly connection: RedisConnection,
    private readonly script: RedisScript<(Reply | Error)[]>,
    private readonly head: readonly Argument[],
    private readonly largest: number,
  ) {}

  /** Answered or rejected as {@link RedisConnection.request} is, once {@link flush} has been called. */
  add<T>(keys: readonly string[], args: readonly Argument[], decode: (reply: Reply) => T, isAbandoned?: () => boolean): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      this.entries.push({ keys, args, isAbandoned, decode, resolve, reject });
    }) as Promise<T>;
  }

  flush(): void {
    const { entries, largest } = this;
    if (entries.length === 0) return;
    this.entries = [];
    if (entries.length <= largest) return this.send(entries);
    for (let start = 0; start < entries.length; start += largest) this.send(entries.slice(start, start + largest));
  }

  private send(entries: readonly Entry<Reply>[]): void {
    let sent = entries;
    const isAbandoned = (): boolean => {
      sent = withoutAbandoned(sent);
      return sent.length === 0;
    };
    const keysAndArgs = (): Argument[] => {
      const flat: Argument[] = [];
      for (const { keys } of sent) for (const key of keys) flat.push(key);
      flat.push(...this.head);
      for (const { args } of sent) for (const arg of args) flat.push(arg);
      return flat;
    };
    const keyCount = (): number => sent.reduce((count, { keys }) => count + keys.length, 0);
    this.script.run(this.connection, keyCount, keysAndArgs, isAbandoned).then(
      (replies) => sent.forEach((entry, index) => settle(entry, replies[index] as Reply | Error)),
      (error: unknown) => sent.forEach(({ reject }) => reject(error)),
    );
  }
}

function settle<Reply>({ keys, decode, resolve, reject }: Entry<Reply>, reply: Reply | Error): void {
  if (reply instanceof Error) reject(refusalOf(keys[0] as string, reply));
  else resolve(decode(reply));
}

/** Whoever gave up has sent its leave by now, and must not be asked for behind that. */
function withoutAbandoned<Reply>(entries: readonly Entry<Reply>[]): readonly Entry<Reply>[] {
  if (!entries.some(({ isAbandoned }) => isAbandoned?.())) return entries;
  const gone = entries.filter(({ isAbandoned }) => isAbandoned?.());
  for (const { reject } of gone) reject(unsent('The request was abandoned before it was sent.'));
  return entries.filter((entry) => !gone.includes(entry));
}
