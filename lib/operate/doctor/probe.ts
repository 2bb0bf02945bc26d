import type { DoctorCheck } from '../../core/model/doctor-report.js';
import type { LeaseDriver } from '../../core/store/lease-driver.js';
import { bad, checkOf, warning, type Finding } from '../../core/store/store-doctor.js';
import { duration, isSettledWithin, now } from '../../core/util/clock.js';

/** Milliseconds until the key of a killed doctor is free. */
const TTL = 10_000;

/** Takes a key as two processes would, and releases it. */
export class Probe {
  /** Milliseconds that the longest request has taken. */
  slowest: number | undefined;
  private readonly tokens: (number | null)[] = [];
  private step = 'acquire';
  /** Ends to listen. A quorum sends a wake-up for each member, also after the first: nobody may take that for an offer to a waiter that is gone. */
  private stop: (() => void) | undefined;

  /**
   * @param key that no other caller uses.
   * @param within milliseconds to wait for a wake-up.
   */
  constructor(
    private readonly mutex: LeaseDriver,
    private readonly key: string,
    private readonly owners: readonly [string, string],
    private readonly within: number,
  ) {}

  /** Never rejects. */
  async checks(): Promise<DoctorCheck[]> {
    let heard: Finding | undefined;
    const probe = await checkOf({ id: 'probe', name: 'a lock, tried', touches: ['G1'] }, async () => {
      try {
        heard = await this.run();
        const least = `the longest request took ${duration(this.slowest ?? 0)}`;
        return { seen: `acquired, renewed, queued, passed on and released; ${least}` };
      } catch (error) {
        const seen = `${this.step} failed: ${String((error as Error).message).split('\n')[0]}`;
        const advice = 'Give the user the rights that are missing: ndl doctor --acl prints them where the store has such a list.';
        return bad(seen, advice, `a lock could not be used (${this.step})`);
      } finally {
        this.stop?.();
        await Promise.all(this.owners.map((owner) => this.mutex.leave({ key: this.key, owner }).catch(() => undefined)));
      }
    });
    const wakeUps = await checkOf({ id: 'wake-ups', name: 'waiters are woken', touches: ['G8'] }, () => {
      return heard ?? { state: 'unknown', seen: 'not known: a lock could not be tried' };
    });
    return [probe, wakeUps];
  }

  private async run(): Promise<Finding> {
    const { mutex, key, owners } = this;
    const [first, second] = owners;
    const take = (step: string, owner: string, queue = false) => this.ask(step, mutex.acquire({ key, owner, ttl: TTL, tokens: 1, queue }));
    this.granted(await take('acquire', first));
    this.expect((await this.ask('renew', mutex.renew([{ key, owner: first, ttl: TTL }])[0]!)) === 'renewed', 'the lease was lost');
    if (mutex.extend) {
      const extended = await this.ask('extend', mutex.extend({ key, owner: first, ttl: TTL, tokens: 1 }));
      this.expect(extended !== 'lost', 'the lease was lost');
    }
    let reason = '';
    await mutex.wakeUps?.open((message) => (reason = message));
    const woken = this.listen(second);
    this.expect(!(await take('queue', second, true)).granted, 'two owners have the key');
    const released = await this.ask('release', mutex.release({ key, owner: first, keepFor: 0 }));
    this.expect(released === 'released', 'the lease was lost');
    const start = now();
    const heard = await this.wakeUp(woken, start, reason);
    this.granted(await take('hand over', second));
    const [before, after] = this.tokens;
    this.expect(before == null || after == null || after > before, `the fencing token did not grow, from ${before} to ${after}`);
    this.expect((await this.ask('release', mutex.release({ key, owner: second, keepFor: 0 }))) === 'released', 'the lease was lost');
    return heard;
  }

  private listen(owner: string): Promise<void> {
    return new Promise((resolve) => (this.stop = this.mutex.wakeUps?.listen(owner, () => resolve())));
  }

  private async wakeUp(woken: Promise<void>, start: number, reason: string): Promise<Finding> {
    const { wakeUps } = this.mutex;
    if (!wakeUps) return { seen: 'waiters poll, as always on this store' };
    const polls = (seen: string): Finding => warning(reason || seen, 'Waiters notice a release later, and send more requests.');
    if (wakeUps.state === 'polling') return polls('waiters poll here');
    // Without messages there is no wake-up to wait for.
    const isHeard = await isSettledWithin(wakeUps.isOpen ? this.within : 0, woken);
    if (isHeard) return { seen: `${duration(now() - start)} after the release` };
    return polls(`no wake-up arrived within ${duration(this.within)}`);
  }

  private granted(reply: Awaited<ReturnType<LeaseDriver['acquire']>>): void {
    this.expect(reply.granted, 'somebody else has the key');
    if (reply.granted) this.tokens.push(reply.token);
  }

  private async ask<T>(step: string, reply: Promise<T>): Promise<T> {
    this.step = step;
    const start = now();
    try {
      return await reply;
    } finally {
      this.slowest = Math.max(this.slowest ?? 0, now() - start);
    }
  }

  private expect(isTrue: boolean, problem: string): void {
    if (!isTrue) throw new Error(problem);
  }
}
