import { JUMPED, RESTORED } from '../faults/fault.js';
import { select } from '../history/read.js';
import { callsOf, claimsOf, groupBy, type Claim } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { timesOf, type Span } from './windows.js';

/** ms until all who are concerned have noticed a fault that can be noticed: a server its clock, and who uses a store that it is another one */
const NOTICED: Readonly<Record<string, number>> = { [JUMPED]: 100, [RESTORED]: 2_500 };

/**
 * G2: no two exclusive claims of a key at a time, no reader beside a writer, no more permits than there are. Where only the clock of one member of a
 * quorum jumps, two may hold a key if it has jumped since the first one asked: that lease may rest on a bare majority, with this member in it. So it is
 * where a store is restored from a copy, and all have noticed that it was away.
 */
export const overlap: Oracle = (history, facts) => {
  const faults = select(history, 'fault');
  const [{ name = '' } = {}] = faults;
  if (facts.lossy && !(name in NOTICED && faults.every((fault) => fault.name === name))) return [];
  const jumps = facts.lossy ? timesOf(history, () => true, NOTICED[name]!) : [];
  const byKey = groupBy(claimsOf(callsOf(history), facts), ({ key }) => key);
  return [...byKey.values()].flatMap((claims) => overlapsOfKey(claims, jumps));
};

function overlapsOfKey(claims: readonly Claim[], jumps: readonly Span[]): Violation[] {
  const violations: Violation[] = [];
  let open: Claim[] = [];
  for (const claim of claims) {
    open = open.filter(({ to }) => to > claim.from);
    const mayBeBoth = (other: Claim): boolean => jumps.some(({ from, to }) => from <= claim.from && to >= other.asked.t);
    const rival = open.find((other) => exclude(claim, other) && !mayBeBoth(other));
    if (rival) violations.push(violation(claim, `${nameOf(claim)} is granted ${ms(rival.to - claim.from)} before ${nameOf(rival)} ends`));
    const taken = claim.asked.mode === 'permits' ? sum(open.filter((other) => !mayBeBoth(other))) + (claim.asked.count ?? 1) : 0;
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
