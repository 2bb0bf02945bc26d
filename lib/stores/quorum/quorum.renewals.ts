import { StoreError } from '../../core/model/errors.js';
import type { LeaseDriver, RenewRequest } from '../../core/store/lease-driver.js';
import type { RequestDeadlines } from '../../core/store/request-deadlines.js';
import { outageOf } from './quorum.election.js';
import type { HeldLeases } from './quorum.held.js';
import type { Member } from './quorum.member.js';
import { Poll, type OpenPoll } from './quorum.poll.js';
import { wordOutcome } from './quorum.votes.js';

type Word = 'renewed' | 'lost';

/** Renews leases at all members, and gives them back to members that have lost them. */
export class Renewals {
  constructor(
    private readonly members: readonly Member[],
    private readonly driverOf: (member: Member) => LeaseDriver,
    private readonly deadlines: RequestDeadlines<OpenPoll>,
    private readonly held: HeldLeases,
  ) {}

  renew(batch: readonly RenewRequest[]): Promise<Word>[] {
    const answers = this.members.map((member) => {
      const replies = sentAll(() => this.driverOf(member).renew(batch), batch);
      return batch.map(({ key }, index) => member.heard(replies[index] ?? Promise.resolve('lost' as const), key));
    });
    return batch.map((request, index) =>
      this.renewal(
        request,
        answers.map((replies) => replies[index] as Promise<Word>),
      ),
    );
  }

  private async renewal(request: RenewRequest, answers: readonly Promise<Word>[]): Promise<Word> {
    const { key, ttl } = request;
    const known = this.held.get(request)?.known;
    const poll = new Poll<Word, Word | 'silent'>(key, this.members, this.deadlines, (votes) => wordOutcome(votes, 'renewed', 'lost'));
    for (const [index, answer] of answers.entries()) {
      const isVoter = (): boolean => known?.get(index) ?? known === undefined;
      const counted = answer.then((word) => {
        if (word === 'lost' || isVoter()) return word;
        const why = `Member ${index + 1} has not said that it grants the key.`;
        throw new StoreError(why, { key, transient: true });
      });
      poll.add(index, counted);
      void Promise.all([answer, poll.decided]).then(
        ([word, outcome]) => {
          if (outcome === 'renewed' && (word === 'lost' || !isVoter())) this.restore(index, request);
        },
        () => undefined,
      );
    }
    const outcome = await poll.decided;
    if (outcome === 'silent') throw outageOf(key, poll.votes);
    if (outcome === 'lost') this.held.delete(request);
    else this.held.renewed(request, ttl);
    return outcome;
  }

  /**
   * Takes the key again at a member that has lost it, if it is free there. That is safe only because a majority has just renewed: another owner would
   * need one of these members.
   */
  private restore(index: number, { key, owner, ttl }: RenewRequest): void {
    const lease = this.held.get({ key, owner });
    const member = this.members[index] as Member;
    // It may be about to leave the queue there.
    if (!lease || member.isAsked(owner)) return;
    const { lastToken: floor, share, known } = lease;
    member
      .inOrder({ key, owner }, () => this.driverOf(member).acquire({ key, owner, ttl, tokens: 1, floor, queue: false, share }))
      .then(
        ({ granted }) => void known.set(index, granted),
        () => undefined,
      );
  }
}

function sentAll(send: () => readonly Promise<Word>[], batch: readonly RenewRequest[]): readonly Promise<Word>[] {
  try {
    return send();
  } catch (fault) {
    return batch.map(() => Promise.reject(fault));
  }
}
