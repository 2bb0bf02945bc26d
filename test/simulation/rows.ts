// What the rows of a server show beside what apps say: an oracle that looks at each request, and at each claim.
import { partsOf } from '../../lib/core/model/owner.js';
import type { Fact } from '../chaos/history/entry.js';
import type { Violation } from '../chaos/oracles/oracle.js';
import { holdsOf, recordOf, RowExclusion } from '../chaos/oracles/rows.js';
import type { StoredRecord } from '../chaos/stores/records/leftovers.js';

/** Milliseconds by which whole microseconds are off. */
const ROUNDING = 0.01;

export class Rows {
  readonly violations: Violation[] = [];
  private readonly exclusion = new RowExclusion(true);
  private readonly leases = new Map<string, readonly { key: string; owner: string }[]>();
  /** Keys that an operator took away: their holders may not know it yet. */
  private readonly forced = new Set<string>();

  /** A request of an app has changed a row, at this time of the server. */
  exchanged(at: number, app: string, before: StoredRecord, after: StoredRecord, time: number): void {
    this.violations.push(...this.exclusion.look(after, time, at));
    const ends = new Map(recordOf(before).holds.map(({ owner, endsAt }) => [owner, endsAt]));
    for (const { owner, endsAt } of holdsOf(recordOf(after), time)) {
      if (endsAt <= (ends.get(owner) ?? Infinity) || partsOf(owner)?.app === app) continue;
      this.broken('G5', after.key, at, `${app} has prolonged the lease of ${owner}`);
    }
  }

  /** An app says until when it has leases. @param leftOf milliseconds that the row of a key lasts yet for an owner. */
  said(fact: Fact, at: number, leftOf: (key: string, owner: string) => number): void {
    if (fact.e === 'forcing') this.forced.add(fact.key);
    if (fact.e === 'granted') this.leases.set(fact.id, fact.leases);
    if (fact.e !== 'granted' && fact.e !== 'claim') return;
    const remaining = fact.e === 'claim' ? fact.remaining : fact.leases.map((lease) => lease.remaining);
    for (const [index, { key, owner }] of (this.leases.get(fact.id) ?? []).entries()) {
      const claimed = remaining[index]!;
      const left = claimed > 0 && !this.forced.has(key) ? leftOf(key, owner) : Infinity;
      if (claimed > left + ROUNDING) this.broken('G4', key, at, `${owner} claims ${claimed} ms, and its row lasts ${left} ms`);
    }
  }

  private broken(guarantee: string, key: string, at: number, what: string): void {
    this.violations.push({ oracle: 'rows', guarantee, key, at, what });
  }
}
