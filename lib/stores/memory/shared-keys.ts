import { after, now } from '../../core/util/clock.js';
import { LockConfigError } from '../../core/model/errors.js';
import type { MemoryTokens } from './memory.tokens.js';
import { SharedKey, type SharedKind } from './shared-key.js';

/** Milliseconds between two looks for what has run out. */
const SWEEP = 1000;
/** Milliseconds for which the last token of a key is remembered. */
const HOUR = 3_600_000;

/** All keys that several may hold, in the memory of one process. */
export class SharedKeys {
  private readonly keys = new Map<string, SharedKey>();
  /** The token of the last write, which readers get. The first to run out is the first. */
  private readonly fences = new Map<string, { token: number; endsAt: number }>();
  private sweeper: NodeJS.Timeout | undefined;

  constructor(
    private readonly tokens: MemoryTokens,
    /** What else a key is in use as. */
    private readonly otherKindOf: (name: string) => string | undefined,
  ) {}

  /** @throws {LockConfigError} when the key is in use as another kind of lock. */
  open(name: string, kind: SharedKind): SharedKey {
    const other = this.otherKindOf(name) ?? this.kindOf(name);
    if (other !== undefined && other !== kind) throw otherKind(name, other, kind);
    let key = this.keys.get(name);
    if (!key) this.keys.set(name, (key = new SharedKey(kind)));
    return key;
  }

  find(name: string, kind: SharedKind): SharedKey | undefined {
    return this.kindOf(name) === kind ? this.keys.get(name) : undefined;
  }

  /** What the key is in use as, without those who have run out. */
  kindOf(name: string): SharedKind | undefined {
    const key = this.keys.get(name);
    key?.expire(now());
    this.forgetIdle(name);
    return this.keys.get(name)?.kind;
  }

  forgetIdle(name: string): void {
    if (this.keys.get(name)?.isIdle) this.keys.delete(name);
  }

  /** A new one for each grant of permits and of the whole key, and the last write's for a reader. */
  tokenOf(name: string, kind: SharedKind, count: number, tokens: number): number {
    if (kind === 'semaphore') return this.tokens.next(tokens);
    const fence = this.fences.get(name);
    const isRead = count !== Infinity;
    const token = isRead && fence ? fence.token : this.tokens.next(tokens);
    this.fences.delete(name);
    this.fences.set(name, { token: isRead ? token : token + tokens - 1, endsAt: now() + HOUR });
    return token;
  }

  /** Whom nobody asks after would stay for ever. */
  sweepLater(): void {
    this.sweeper ??= after(SWEEP, () => {
      this.sweeper = undefined;
      for (const name of [...this.keys.keys()]) this.kindOf(name);
      for (const [name, { endsAt }] of this.fences) {
        if (endsAt > now()) break;
        this.fences.delete(name);
      }
      if (this.keys.size > 0 || this.fences.size > 0) this.sweepLater();
    }).unref();
  }
}

/** A key is one kind of lock at a time: to go by both would exclude nobody. */
export function otherKind(key: string, isNow: string, wanted: string): LockConfigError {
  return new LockConfigError(`"${key}" is in use as a ${isNow}: it cannot be a ${wanted} at the same time.`, { key });
}
