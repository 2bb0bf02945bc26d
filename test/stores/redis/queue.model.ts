/** One of the callers that the test plays. It belongs to a process, which is told by its inbox. */
export interface Caller {
  readonly owner: string;
  /** Channel of its process; '': nobody tells it. */
  readonly inbox: string;
}

/** Entries of the queue among which those are found that are told when an offer ends. */
const NEXT = 8;

/** The locks of some keys, and what those who wait for one are told: written from the protocol's description. */
export abstract class QueueModel<Lock> {
  readonly locks: ReadonlyMap<string, Lock>;
  /** Processes that listen. */
  readonly listening = new Set<string>();
  /** What was said since the last look: `[inbox, text]`. */
  said: [string, string][] = [];

  constructor(
    keys: readonly string[],
    FreeLock: new () => Lock,
    protected readonly offerTtl: number,
  ) {
    this.locks = new Map(keys.map((key) => [key, new FreeLock()]));
  }

  at(key: string): Lock {
    return this.locks.get(key)!;
  }

  /** Those who wait for it, in their order. */
  protected abstract queueOf(key: string): readonly Caller[];

  protected isGone({ inbox }: Caller): boolean {
    return inbox !== '' && !this.listening.has(inbox);
  }

  protected sayOffer(key: string, { inbox, owner }: Caller): void {
    this.say(inbox, `${key} is offered to ${owner}`);
  }

  /** To the processes that come next, each once: when an offer or a minHold ends. */
  protected sayNext(key: string, told: string, ms: number): void {
    const done = new Set([told, '']);
    for (const { inbox, owner } of this.queueOf(key).slice(0, NEXT)) {
      if (!done.has(inbox)) this.say(inbox, `${key} may be free for ${owner} in ${ms} ms`);
      done.add(inbox);
    }
  }

  private say(inbox: string, text: string): void {
    if (this.listening.has(inbox)) this.said.push([inbox, text]);
  }
}
