import { configError } from '../../../core/model/errors.js';
import { isSettledWithin, now } from '../../../core/util/clock.js';

/** Milliseconds after which members that have not answered are asked again. */
const AGAIN = 10_000;
/** Milliseconds for which a list that was refused stays so without another look: each call would ask all members. */
const PAUSE = 1000;

/**
 * Which cluster each member of a list is of: two clusters would both grant a key. It refuses a list in which members of two have answered. One that is
 * silent may have granted the key before, or to others. So what it has said counts, with one exception: a cluster that was restored from a copy has
 * another id, and the old one, which some member has changed for it, is void.
 *
 * | known | answers now | silent | |
 * |---|---|---|---|
 * | nothing | a=1 | b | granted |
 * | a=1 | b=2 | a | refused |
 * | a=1, b=2 | a=1 | b | refused |
 * | a=1, b=1, c=1 | a=2, b=2 | c | granted: restored |
 * | a=1, b=1, c=1 | a=2, b=2, c=1 | | refused, until c is silent or restored |
 * | a=1, b=2 | a=3 | b | refused: no member has had the id of b, and another one now |
 */
export class Members {
  private readonly clusters = new Map<string, string>();
  /** Ids that a member has changed for another one. */
  private readonly former = new Set<string>();
  /** Members that have answered in this round. */
  private readonly fresh = new Set<string>();
  private round: Promise<unknown> | undefined;
  private isAsking = false;
  private askedAt = -Infinity;
  private refusedAt = -Infinity;

  /** @param clusterOf asks a member for the id of its cluster, which takes up to a `timeout`. */
  constructor(
    private readonly store: string,
    private readonly members: readonly string[],
    private readonly timeout: number,
    private readonly clusterOf: (member: string) => Promise<string | undefined>,
  ) {}

  /** To be called with what a member says, before its answer is used. `undefined`: it does not say, or is not used any more. */
  heard(member: string, cluster: string | undefined): void {
    if (cluster === undefined) return void this.clusters.delete(member);
    const before = this.clusters.get(member) ?? cluster;
    this.clusters.set(member, cluster);
    if (this.isAsking) this.fresh.add(member);
    if (before !== cluster) {
      this.former.add(before);
      this.former.delete(cluster);
    }
    if (before !== cluster || this.mayPass) this.begin(this.timeout);
  }

  /** Resolves when those that answer were compared. @throws {LockConfigError} if they are not of one cluster. */
  async settled(): Promise<void> {
    if (this.members.length < 2) return;
    // One that is silent must not make the first request late.
    if (!this.round) this.begin(this.timeout / 2);
    else if (this.mayPass) this.begin(this.timeout);
    await this.round;
    const { other } = this;
    if (other === undefined) return;
    const [first] = this.clusters.keys();
    const problem = `${first} and ${other} are not of one cluster, and each would grant the same key. Give the members of one only.`;
    throw configError('STORE', `${this.store}: ${problem}`);
  }

  /** To be called from time to time: asks those that have not answered. */
  askRest(): void {
    if (this.members.length < 2 || this.isAsking || now() < this.askedAt + AGAIN) return;
    if (!this.round) return this.begin(this.timeout / 2);
    this.askedAt = now();
    for (const member of this.members) if (!this.clusters.has(member)) void this.ask(member);
  }

  /** One that is not of the cluster of the first. */
  private get other(): string | undefined {
    const [first] = this.clusters.values();
    return [...this.clusters.keys()].find((member) => this.clusters.get(member) !== first);
  }

  /** It would be refused, and was not asked for some time. */
  private get mayPass(): boolean {
    return this.other !== undefined && now() >= this.refusedAt + PAUSE;
  }

  private begin(within: number): void {
    if (this.members.length < 2 || this.isAsking) return;
    this.isAsking = true;
    this.askedAt = now();
    this.round = isSettledWithin(within, Promise.all(this.members.map((member) => this.ask(member)))).then(() => {
      this.isAsking = false;
      for (const member of this.members) {
        if (!this.fresh.has(member) && this.former.has(this.clusters.get(member) ?? '')) this.clusters.delete(member);
      }
      this.fresh.clear();
      if (this.other !== undefined) this.refusedAt = now();
    });
  }

  private async ask(member: string): Promise<void> {
    // One that does not answer is compared when it does.
    const cluster = await this.clusterOf(member).catch(() => undefined);
    if (cluster !== undefined) this.heard(member, cluster);
  }
}
