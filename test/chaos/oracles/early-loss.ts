import { EMPTIED } from '../faults/fault.js';
import { select } from '../history/read.js';
import { callsOf, claimsOf, isLoss, type CallStory } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { forcesOf } from './windows.js';

/** ms by which a timer may be early, and by which each suspend of the machine may count for longer than it was: it is told in hundredths of a second */
const SLACK = 30;

/**
 * G4, G6: as long as the store forgets nothing, a lease is not lost before its end: neither by a renewal's answer nor by a release's. A lease that a bare
 * majority of a quorum has granted has the others from its first renewal on. Until then, it does not survive that one of them forgets.
 */
export const earlyLoss: Oracle = (history, facts) => {
  if (facts.lossy) return [];
  const closing = new Map(select(history, 'closing').map(({ w, t }) => [w, t]));
  const emptied = select(history, 'fault').filter(({ name }) => name === EMPTIED);
  const calls = callsOf(history);
  const byId = new Map(calls.map((call) => [call.asked.id, call]));
  const claims = claimsOf(calls, facts);
  // Several leases that were taken together end with the first of them, which may be over when the last one is granted.
  const ends = new Map<string, number>();
  for (const { asked, granted } of calls) if (granted?.leases.some(({ remaining }) => remaining === 0)) ends.set(asked.id, granted.t);
  for (const { asked, validUntil } of claims) ends.set(asked.id, Math.min(ends.get(asked.id) ?? Infinity, validUntil));
  return claims.flatMap(({ key, asked, call }): Violation[] => {
    const validUntil = ends.get(asked.id)!;
    const { signal, releasing, released } = call;
    // The limit of the outermost call is one of all that re-enter its lease.
    const limit = Math.min(closing.get(asked.w) ?? Infinity, endOfHold(call), endOfHold(byId.get(asked.chain)));
    const lost = isLoss(signal) && signal.t < limit ? signal : undefined;
    const refused = released && !released.ours && (releasing?.t ?? released.t) < limit ? released : undefined;
    const loss = lost ?? refused;
    if (!loss) return [];
    const faults = select(history, 'fault').filter(({ target, t }) => target === asked.w && t >= asked.t && t <= loss.t);
    const suspends = faults.filter(({ name }) => name === 'machine asleep').length;
    if (loss.t >= validUntil - SLACK * (1 + suspends)) return [];
    // The answer to the call that was granted first may have been under way when the key was taken.
    const begun = byId.get(asked.chain)?.asked.t ?? asked.t;
    const isForced = asked.keys.some((each) => forcesOf(history, each).some(({ from, to }) => from <= loss.t && begun <= to));
    if (isForced) return [];
    const firstRenewal = (call.granted?.t ?? 0) + asked.keyTimeout / 3 + asked.requestTimeout;
    if (emptied.some(({ t }) => t >= asked.t && t <= firstRenewal)) return [];
    const why = loss.e === 'signal' ? loss.reason : 'its release is answered "not ours"';
    const what = `${asked.id} loses its lease ${(validUntil - loss.t).toFixed(0)} ms before its end: ${why}`;
    return [{ oracle: 'early loss', guarantee: 'G4', kind: asked.kind, key, at: loss.t, what }];
  });
};

/** When its `maxHold` is over at the earliest, if it has one: it counts from the grant, which the caller learns later. */
function endOfHold(call: CallStory | undefined): number {
  const maxHold = call?.asked.maxHold ?? Infinity;
  return call ? call.asked.t + maxHold - SLACK : Infinity;
}
