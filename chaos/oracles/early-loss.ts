import { select } from '../history/read.js';
import { callsOf, claimsOf } from './calls.js';
import type { Oracle, Violation } from './oracle.js';

/** ms by which a timer may be early */
const SLACK = 5;

/** G4, G6: as long as the store forgets nothing, a lease is not lost before its end: neither by a renewal's answer nor by a release's. */
export const earlyLoss: Oracle = (history, { lossy }) => {
  if (lossy) return [];
  const closing = new Map(select(history, 'closing').map(({ w, t }) => [w, t]));
  return claimsOf(callsOf(history)).flatMap(({ key, validUntil, asked, call }): Violation[] => {
    const { granted, signal, releasing, released } = call;
    const limit = Math.min(closing.get(asked.w) ?? Infinity, asked.maxHold === null ? Infinity : granted!.t + asked.maxHold - SLACK);
    const lost = signal && signal.t < limit ? signal : undefined;
    const refused = released && !released.ours && (releasing?.t ?? released.t) < limit ? released : undefined;
    const loss = lost ?? refused;
    if (!loss || loss.t >= validUntil - SLACK) return [];
    const why = loss.e === 'signal' ? loss.reason : 'its release is answered "not ours"';
    const what = `${asked.id} loses its lease ${(validUntil - loss.t).toFixed(0)} ms before its end: ${why}`;
    return [{ oracle: 'early loss', guarantee: 'G4', kind: asked.kind, key, at: loss.t, what }];
  });
};
