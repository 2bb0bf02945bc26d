import { callsOf, claimsOf, groupBy, type Claim } from './calls.js';
import type { Facts, Oracle, Violation } from './oracle.js';

/**
 * Tokens are safe integers that grow from one holding of a key to the next. Where claims exclude each other and the store forgets nothing, that is
 * the order in which callers get their grants. Elsewhere it is only known that an owner which was asked for after a grant came later. Callers of
 * one process may share an owner, and one that the store has forgotten goes on giving its tokens away until its process learns that.
 */
export const tokens: Oracle = (history, facts) => {
  const byKey = groupBy(claimsOf(callsOf(history), facts), ({ key }) => key);
  return [...byKey.values()].flatMap((claims) => tokensOfKey(claims, facts));
};

function tokensOfKey(claims: readonly Claim[], { lossy }: Facts): Violation[] {
  const violations: Violation[] = [];
  const largest = new Largest();
  const born = new Map<string, number>();
  for (const { owner, asked } of claims) born.set(owner, Math.min(born.get(owner) ?? Infinity, asked.t));
  for (const claim of claims) {
    const { token, asked, owner } = claim;
    // A reader has the token of the last write that the store remembers.
    if (lossy && asked.mode === 'read') continue;
    if (!Number.isSafeInteger(token)) violations.push(violation(claim, `${asked.id} has the token ${token}`));
    const time = !lossy && asked.mode === 'alone' ? claim.from : born.get(owner)!;
    const before = largest.before(time, claim);
    // Readers have the token of the last write.
    const isSmall = token !== null && before && (asked.mode === 'read' ? token < before.token! : token <= before.token!);
    if (isSmall) violations.push(violation(claim, `${asked.id} has the token ${token}, but ${before.asked.id} had ${before.token} before`));
    largest.add(claim);
  }
  return violations;
}

/** The claim with the largest token of all that were granted before some time. */
class Largest {
  private readonly claims: { claim: Claim; largest: Claim }[] = [];

  add(claim: Claim): void {
    const last = this.claims.at(-1)?.largest;
    this.claims.push({ claim, largest: last && last.token! >= claim.token! ? last : claim });
  }

  before(time: number, { asked }: Claim): Claim | undefined {
    for (let i = this.claims.length - 1; i >= 0; i--) {
      const { claim, largest } = this.claims[i]!;
      if (claim.from < time && claim.asked.chain !== asked.chain) return largest.asked.chain === asked.chain ? claim : largest;
    }
    return undefined;
  }
}

function violation({ key, from, asked }: Claim, what: string): Violation {
  return { oracle: 'tokens', guarantee: 'G2', kind: asked.kind, key, at: from, what };
}
