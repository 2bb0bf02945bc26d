import type { WakeUps } from '../../core/store/lease-driver.js';
import { after } from '../../core/util/clock.js';
import type { Member } from './quorum.member.js';
import { queueLockOf } from './quorum.queue-lock.js';
import { majorityOf } from './quorum.votes.js';

/** Milliseconds between the first member's offer and the question, if the others offer nothing. */
const LONGEST_GATHERING = 5;

/** A release offers the key at each member: the waiter is woken when a majority of them has sent a wake-up. */
export class QuorumWakeUps implements WakeUps {
  private readonly majority: number;

  /** @param inboxes of the members that have one. */
  constructor(
    private readonly members: readonly Member[],
    private readonly inboxes: readonly WakeUps[],
  ) {
    this.majority = majorityOf(members.length);
  }

  get isOpen(): boolean {
    return this.inboxes.filter(({ isOpen }) => isOpen).length >= this.majority;
  }

  get state(): WakeUps['state'] {
    const numberOf = (...states: unknown[]): number => this.inboxes.filter(({ state }) => states.includes(state ?? 'woken')).length;
    if (numberOf('woken') >= this.majority) return 'woken';
    return numberOf('woken', 'interrupted') >= this.majority ? 'interrupted' : 'polling';
  }

  /** Resolves when a majority listens, or when all have tried. */
  open(...log: Parameters<WakeUps['open']>): Promise<void> {
    return new Promise((resolve) => {
      const opening = this.inboxes.map(async (inbox) => {
        await inbox.open(...log);
        if (this.isOpen) resolve();
      });
      void Promise.allSettled(opening).then(() => resolve());
    });
  }

  check(): void {
    for (const inbox of this.inboxes) inbox.check?.();
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    const offers = new Set<WakeUps>();
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const gathered = (): void => {
      clearTimeout(timer);
      timer = undefined;
      offers.clear();
      wake();
    };
    const { owner: queueLockOwner } = queueLockOf({ key: '', owner });
    const stops = this.inboxes.flatMap((inbox) => [
      inbox.listen(queueLockOwner, (askIn) => {
        if (!isOver) wake(askIn);
      }),
      inbox.listen(owner, (askIn) => {
        if (isOver) return;
        if (askIn !== undefined) return wake(askIn);
        offers.add(inbox);
        if (offers.size >= this.majority) gathered();
        else timer ??= after(LONGEST_GATHERING, gathered);
      }),
    ]);
    return () => {
      isOver = true;
      clearTimeout(timer);
      // A member forgets the queue entry of an owner that does not listen, and a request that is under way may still have to remove it.
      void Promise.all(this.members.flatMap((member) => [member.answered(owner), member.answered(queueLockOwner)])).then(() => {
        for (const stop of stops) stop();
      });
    };
  }
}
