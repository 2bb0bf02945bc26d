import { configError } from '../../../core/model/errors.js';
import { isSettledWithin, now } from '../../../core/util/clock.js';

/** Milliseconds after which members that have not answered are asked again. */
const AGAIN = 10_000;

/** Which cluster each member of a list is of: two clusters would both grant a key. It refuses a list in which members of two have answered. */
export class Members {
  private readonly clusters = new Map<string, string>();
  /** Members that have answered in this round. */
  private readonly fresh = new Set<string>();
  private round: Promise<unknown> | undefined;
  private isAsking = false;
  private askedAt = -Infinity;

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
    // A cluster that was restored from a copy has another id, at all of its members: what they have said before is void.
    if (before !== cluster) {
      for (const other of this.clusters.keys()) if (other !== member && !this.fresh.has(other)) this.clusters.delete(other);
    }
    if (!this.isAsking && (before !== cluster || this.other !== undefined)) this.begin(this.timeout);
  }

  /** Resolves when those that answer were compared. @throws {LockConfigError} if they are not of one cluster. */
  async settled(): Promise<void> {
    if (this.members.length < 2) return;
    // One that is silent must not make the first request late.
    if (!this.round) this.begin(this.timeout / 2);
    else if (this.other !== undefined && !this.isAsking) this.begin(this.timeout);
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

  private begin(within: number): void {
    if (this.members.length < 2) return;
    this.isAsking = true;
    this.askedAt = now();
    this.round = isSettledWithin(within, Promise.all(this.members.map((member) => this.ask(member)))).then(() => {
      this.isAsking = false;
      this.fresh.clear();
    });
  }

  private async ask(member: string): Promise<void> {
    // One that does not answer is compared when it does.
    const cluster = await this.clusterOf(member).catch(() => undefined);
    if (cluster !== undefined) this.heard(member, cluster);
  }
}
