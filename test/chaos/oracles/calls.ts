import type { Asked, Entry, Said } from '../history/entry.js';
import type { Facts } from './oracle.js';

/** All that the history says of one call. */
export interface CallStory {
  asked: Said<'asked'>;
  granted?: Said<'granted'>;
  claims: Said<'claim'>[];
  aborting?: Said<'aborting'>;
  signal?: Said<'signal'>;
  releasing?: Said<'releasing'>;
  released?: Said<'released'>;
  ended?: Said<'ended'>;
  /** when its worker was killed, if it was */
  killed?: number;
}

export function callsOf(history: readonly Entry[]): CallStory[] {
  const calls = new Map<string, CallStory>();
  const killed = new Map<string, number>();
  for (const entry of history) {
    if (entry.e === 'asked') calls.set(entry.id, { asked: entry, claims: [] });
    else if (entry.e === 'killed') killed.set(entry.worker, entry.t);
    else if ('id' in entry) note(calls.get(entry.id), entry);
  }
  for (const call of calls.values()) call.killed = killed.get(call.asked.w);
  return [...calls.values()];
}

function note(call: CallStory | undefined, entry: Entry): void {
  if (!call) return;
  if (entry.e === 'claim') call.claims.push(entry);
  else if (entry.e === 'granted') call.granted = entry;
  else if (entry.e === 'aborting') call.aborting = entry;
  else if (entry.e === 'signal') call.signal ??= entry;
  else if (entry.e === 'releasing') call.releasing = entry;
  else if (entry.e === 'released') call.released = entry;
  else if (entry.e === 'ended') call.ended = entry;
}

/** For how long a call claimed one key. */
export interface Claim {
  from: number;
  to: number;
  /** the end of its validity, as far as it was said */
  validUntil: number;
  key: string;
  token: number | null;
  owner: string;
  asked: Asked & { t: number; w: string };
  call: CallStory;
}

/**
 * A claim reaches from the grant to the release, the end of validity that was said last, or the abort of its signal, whichever comes first. A
 * killed worker's claim is not cut short, unless the store can know of its death: the key must not be given to another one before.
 */
export function claimsOf(calls: readonly CallStory[], { knowsDeaths = false }: Pick<Facts, 'knowsDeaths'>): Claim[] {
  const claims: Claim[] = [];
  for (const call of calls) {
    const { asked, granted, releasing, signal, killed } = call;
    granted?.leases.forEach(({ key, token, owner, remaining }, i) => {
      const valid = call.claims.filter((claim) => claim.remaining[i]! > 0);
      const validUntil = Math.max(granted.t + remaining, ...valid.map((claim) => claim.t + claim.remaining[i]!));
      const death = (knowsDeaths && killed) || Infinity;
      const to = Math.min(validUntil, releasing?.t ?? Infinity, isLoss(signal) ? signal.t : Infinity, death);
      if (to > granted.t) claims.push({ from: granted.t, to, validUntil, key, token, owner, asked, call });
    });
  }
  return claims.sort((a, b) => a.from - b.from);
}

/** A leader's signal also aborts when it is asked to end: it holds its key until it gives it back. */
export function isLoss(signal: Said<'signal'> | undefined): signal is Said<'signal'> {
  return signal !== undefined && signal.reason.startsWith('LockLostError');
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
