import { callsOf, claimsOf, groupBy, type Claim } from './calls.js';
import type { Oracle, Violation } from './oracle.js';

/** G2: no two exclusive claims of a key at a time, no reader beside a writer, no more permits than there are. */
export const overlap: Oracle = (history, facts) => {
  if (facts.lossy) return [];
  const byKey = groupBy(claimsOf(callsOf(history), facts), ({ key }) => key);
  return [...byKey.values()].flatMap(overlapsOfKey);
};

function overlapsOfKey(claims: readonly Claim[]): Violation[] {
  const violations: Violation[] = [];
  let open: Claim[] = [];
  for (const claim of claims) {
    open = open.filter(({ to }) => to > claim.from);
    const rival = open.find((other) => exclude(claim, other));
    if (rival) violations.push(violation(claim, `${nameOf(claim)} is granted ${ms(rival.to - claim.from)} before ${nameOf(rival)} ends`));
    const taken = claim.asked.mode === 'permits' ? sum(open) + (claim.asked.count ?? 1) : 0;
    const permits = claim.asked.permits ?? Infinity;
    if (taken > permits) violations.push(violation(claim, `${nameOf(claim)} makes ${taken} permits taken of ${permits}`));
    open.push(claim);
  }
  return violations;
}

function exclude(a: Claim, b: Claim): boolean {
  return a.asked.chain !== b.asked.chain && (a.asked.mode === 'alone' || b.asked.mode === 'alone');
}

function sum(claims: readonly Claim[]): number {
  return claims.reduce((total, { asked }) => total + (asked.count ?? 1), 0);
}

function violation({ key, from, asked }: Claim, what: string): Violation {
  return { oracle: 'overlap', guarantee: 'G2', kind: asked.kind, key, at: from, what };
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;

function nameOf({ asked, token }: Claim): string {
  return `${asked.id} (${asked.mode}, token ${token})`;
}
