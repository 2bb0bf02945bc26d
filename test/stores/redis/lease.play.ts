import { CALLERS, type LeaseStep } from './model.steps.js';
import type { Caller } from './queue.model.js';
import type { MutexModel } from './mutex.model.js';
import { ScriptPlay, type Parts } from './script.play.js';
import type { SharingModel } from './sharing.model.js';

export type StepOf<Step, T> = Extract<Step, { readonly type: T }>;

/** A lock of a model, by its key. */
export type EntryOf<M extends { locks: ReadonlyMap<string, unknown> }> =
  M['locks'] extends ReadonlyMap<string, infer Lock> ? [string, Lock] : never;

/** How long an offer lasts, milliseconds: a run takes far less, also than the 20 s between two lengths of a lease. */
export const OFFER = 20_000;

/** The length of what has this left: a run takes far less than the 20 s between two lengths. */
export const rounded = (left: number): number => Math.ceil(left / 20_000) * 20_000;

/** The keys of a lock. */
export const keysOf = (key: string): string[] => [key, `{${key}}:fence`, `{${key}}:queue`];

/** One reply comes by itself, several as a list. */
export function repliesOf(reply: unknown, { length }: readonly unknown[]): unknown[] {
  return length === 1 ? [reply] : (reply as unknown[]);
}

/** What the scripts of all leases have in common. */
export abstract class LeasePlay<
  Key extends string,
  M extends MutexModel | SharingModel,
  Step extends { readonly type: string },
> extends ScriptPlay<M, Step> {
  /** The last one of each key that was given. */
  protected readonly lastTokens = new Map<string, number>();
  /** Who has been told that a key is theirs, and has not given it up since: the server is not asked. */
  protected abstract readonly believing: ReadonlyMap<string, { delete(owner: string): boolean }>;

  /** How the queue knows one who waits. */
  protected abstract entryOf(key: Key, caller: Caller): string;

  /** Of a request whose first token is to be larger than the clock and any before. */
  protected floorOf(key: Key, isAhead: boolean): number {
    return isAhead ? Math.max(Date.now() * 1000, this.lastTokens.get(key) ?? 0) + 5_000_000 : 0;
  }

  protected release({ batch }: StepOf<LeaseStep<Key>, 'release'>): Parts {
    const requests = batch.map(({ by, ...request }) => ({
      ...request,
      caller: this.callerOf(request.key, by),
      keepFor: request.leaves ? 0 : request.keepFor,
    }));
    return [
      requests.flatMap(({ key }) => [key, `{${key}}:queue`]),
      requests.map(({ key, caller, keepFor, leaves }) =>
        keepFor === 0 && !leaves ? caller.owner : [caller.owner, keepFor, leaves ? this.entryOf(key, caller) : ''].join('\n'),
      ),
      (reply) => {
        const expected = requests.map(({ key, caller, keepFor, leaves }) => {
          this.believing.get(key)!.delete(caller.owner);
          return leaves ? this.model.leave(key, caller) : this.model.release(key, caller, keepFor);
        });
        expect(repliesOf(reply, requests)).toEqual(expected);
      },
    ];
  }

  protected renew({ ttl, batch }: StepOf<LeaseStep<Key>, 'renew'>): Parts {
    const requests = batch.map(({ key, by }) => ({ key, caller: this.callerOf(key, by) }));
    return [
      requests.map(({ key }) => key),
      [ttl, ...requests.map(({ caller }) => caller.owner)],
      (reply) => expect(repliesOf(reply, requests)).toEqual(requests.map(({ key, caller }) => this.model.renew(key, caller, ttl))),
    ];
  }

  protected callerOf(key: Key, by: Caller | 'holder'): Caller {
    if (by !== 'holder') return this.present(by);
    const holders = this.model.holdersOf(key).map((name) => name.replace('kept:', ''));
    return this.present(CALLERS.find(({ owner }) => holders.includes(owner)) ?? CALLERS[0]!);
  }

  /** There is nothing else of the key, and all of it expires (G7). */
  protected async compareNames(key: string): Promise<void> {
    const names = await this.redis.keys(`*${key}*`);
    expect(keysOf(key)).toEqual(expect.arrayContaining(names));
    for (const left of await Promise.all(names.map((name) => this.redis.pttl(name)))) expect(left).toBeGreaterThan(0);
  }
}
