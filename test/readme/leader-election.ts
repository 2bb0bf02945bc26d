// #region leader-election
import { Locks, type Term } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';

/** Receives the messages, and refuses a token that is smaller than the largest it has seen. */
export interface Channel {
  send(message: string, token: number): Promise<void>;
}

export class Relay {
  readonly locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }), { namespace: 'shop:' });
  readonly election = this.locks.leaderElection('relay', { keyTimeout: 5000 });

  constructor(
    private readonly channel: Channel,
    private readonly outbox: string[],
  ) {}

  /** One instance relays, the others are standbys. Returns when this one has resigned, or rejects when the locks are closed. */
  async run(): Promise<void> {
    await this.election.run((term) => this.lead(term));
  }

  /** Called for each term. The signal aborts when the term is lost or must end: then this must return soon. */
  private async lead(term: Term): Promise<void> {
    while (!term.signal.aborted) {
      const message = this.outbox.shift();
      if (message !== undefined) await this.channel.send(message, term.fencingToken!);
      else await pause(20);
    }
  }
}
// #endregion

// #region leader-observers
/** For a health page. Whether this instance leads needs no request; who leads, and since when, is asked from the store. */
export async function status({ election }: Relay): Promise<string> {
  if (election.isLeader()) return 'leader';
  const leader = await election.leader();
  return leader ? `standby of ${leader.owner} since ${leader.since?.toISOString()}` : 'nobody leads';
}

export function watch({ election }: Relay, log: (line: string) => void): void {
  election.on('elected', (term) => log(`leads with token ${term.fencingToken}`));
  election.on('revoked', () => log('is not the leader any more'));
}
// #endregion
