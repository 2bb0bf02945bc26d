import { now } from '../util/clock.js';
import type { ExtendReply } from '../store/lease-driver.js';
import { asStoreError } from '../model/errors.js';
import type { Tenure } from './tenure.js';

/** How many holders in a row, and for how many milliseconds, a process keeps a key that others may want. */
export type TurnLimits = Readonly<Record<'handOvers' | 'time', number>>;

/**
 * The turns that a grant gives to the callers of this process: how many of them pass the key on, until when, and by which fencing tokens. Where nobody
 * else wants the key the store gives more turns before these are over, so that no caller waits for its answer.
 */
export class Turns {
  private left: number;
  private endsAt: number;
  private mayAsk: boolean;

  /**
   * @param tokens how many were reserved.
   * @param isContested whether others are known to want the key.
   */
  constructor(
    private readonly limits: TurnLimits,
    tokens: number,
    private nextToken: number | null,
    isContested: boolean,
  ) {
    this.left = tokens;
    this.endsAt = now() + limits.time;
    this.mayAsk = tokens > 1 && !isContested;
  }

  areOver(time: number): boolean {
    return this.left <= 0 || time >= this.endsAt;
  }

  /** The fencing token of the next turn, which begins. */
  take(): number | null {
    const token = this.nextToken;
    this.left--;
    if (token !== null) this.nextToken = token + 1;
    return token;
  }

  /** Asks for more in good time, as soon as the turn that was just given has begun. */
  extend(tenure: Tenure): void {
    const { handOvers, time } = this.limits;
    if (!this.mayAsk || (this.left > handOvers / 4 && this.endsAt - tenure.grantedAt > time / 4)) return;
    this.mayAsk = false;
    setImmediate(() => void this.ask(tenure));
  }

  private async ask(tenure: Tenure): Promise<void> {
    const { runtime, succession } = tenure;
    const { current } = succession;
    if (this.areOver(now()) || current.remaining() === 0 || !current.isRenewed || runtime.closed.aborted) return;
    const { left } = this;
    const { handOvers, time } = this.limits;
    const { key, owner, driver, ttl } = tenure;
    const sentAt = now();
    let reply: ExtendReply | undefined;
    try {
      reply = await driver.extend?.({ key, owner, ttl, tokens: handOvers });
    } catch (cause) {
      // The store is asked again when these turns are over.
      tenure.noticeUnknown('renew', asStoreError(cause, key));
    }
    if (!reply) return;
    tenure.settleRenewal(reply === 'lost' ? 'lost' : 'renewed', sentAt);
    if (typeof reply === 'string') return;
    // They count from when they were asked for.
    this.left += handOvers - left;
    this.endsAt = sentAt + time;
    this.nextToken = reply.token;
    this.mayAsk = true;
  }
}
