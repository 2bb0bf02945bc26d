import type { Entry } from '../history/entry.js';
import { select } from '../history/read.js';
import { callsOf, claimsOf, groupBy, type CallStory, type Claim } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { forcesOf, timesOf } from './windows.js';

/** Steps that are tried for one key. Where an order exists, it is found in a few more than the key has. */
const MOST_TRIES = 200_000;
/** ms for which the request of a caller that has gone may still have an effect, beside its lease: it is repeated, and its place in a queue expires. */
const AFTERMATH = 62_000;

/** Something that the store did to a key at one moment between two times: between a request and its reply. */
interface Step {
  readonly does: 'take' | 'end' | 'refuse';
  readonly call: CallStory;
  readonly token: number | null;
  readonly from: number;
  /** Infinity: it need not have happened. */
  readonly to: number;
}

interface State {
  /** Calls that have the key. */
  readonly holders: readonly CallStory[];
  /** Of the last one that had it alone. */
  readonly token: number;
}

/**
 * G2: the answers of a key can be put in one order that a lock with leases and tokens allows, in which each step lies between its request and its answer:
 * nobody takes a key that another one has, each token is larger than the one before, a lease ends after the last moment at which its holder counted on it,
 * and by a confirmed release; and nobody is refused while the key is free and no one else wants it. A search for such an order, as Wing and Gong, and Lowe
 * ("Testing for linearizability", 2017) describe it: what was tried with the same steps done and the same state is not tried again.
 */
export const order: Oracle = (history, facts) => {
  if (facts.lossy) return [];
  const calls = callsOf(history);
  const end = history.at(-1)?.t ?? 0;
  const wanted = groupBy(
    calls.flatMap((call) => call.asked.keys.map((key) => ({ key, call }))),
    ({ key }) => key,
  );
  const claims = groupBy(claimsOf(calls, facts), ({ key }) => key);
  return [...wanted].flatMap(([key, ofKey]) => {
    const all = ofKey.map(({ call }) => call);
    const steps = [...(claims.get(key) ?? []).flatMap((claim) => stepsOf(claim)), ...refusalsOf(all, history, key)];
    const stuck = search(steps);
    if (stuck === 'undecided')
      return [{ oracle: 'order', guarantee: 'G2', key, at: end, what: `no order is found in ${MOST_TRIES} steps` }];
    return stuck ? [violation(key, stuck)] : [];
  });
};

function stepsOf({ call, token, to }: Claim): Step[] {
  const { asked, granted, releasing, released } = call;
  const isConfirmed = released?.ours === true && releasing !== undefined;
  const end = isConfirmed ? Math.max(released.t, granted!.t + asked.minHold) : Infinity;
  return [
    { does: 'take', call, token, from: asked.t, to: granted!.t },
    { does: 'end', call, token, from: isConfirmed ? Math.min(to, releasing.t) : to, to: end },
  ];
}

/** Single tries that found the key taken, though nobody else was asking for it: somebody must have had it. */
function refusalsOf(calls: readonly CallStory[], history: readonly Entry[], key: string): Step[] {
  const end = history.at(-1)?.t ?? 0;
  const disturbed = select(history, 'fault').length > 0;
  const restarts = timesOf(history, ({ group }) => group === 'restart', 0);
  const forces = forcesOf(history, key);
  return calls.flatMap((call): Step[] => {
    const { asked, granted, ended } = call;
    // One of several keys is enough to refuse them all.
    if (asked.patience !== 0 || asked.keys.length > 1 || granted || ended?.outcome !== 'timeout') return [];
    const mayAsk = (other: CallStory): boolean => {
      const answered = other.granted?.t ?? other.ended?.t ?? other.killed ?? end;
      const isGone = other.granted === undefined && (disturbed || other.ended?.outcome !== 'timeout');
      return other !== call && other.asked.t <= ended.t && answered + (isGone ? AFTERMATH : 0) >= asked.t;
    };
    // A release is committed lazily: a server that crashes may forget it, and the lease ends by itself.
    const isBack = ({ asked: { keyTimeout, minHold }, released }: CallStory): boolean =>
      released !== undefined &&
      released.t + Math.max(keyTimeout, minHold) >= asked.t &&
      restarts.some(({ from, to }) => released.t <= to && from <= ended.t);
    const isKept = forces.some(({ from, keptUntil }) => from <= ended.t && keptUntil >= asked.t);
    if (isKept || calls.some((other) => mayAsk(other) || isBack(other))) return [];
    return [{ does: 'refuse', call, token: null, from: asked.t, to: ended.t }];
  });
}

/** The first step that has its place in none of the orders; `undefined`: there is an order. */
function search(all: readonly Step[]): Step | 'undecided' | undefined {
  const steps = [...all].sort((a, b) => a.from - b.from || a.to - b.to);
  const indexes = steps.map((_, i) => i);
  const takes = indexes.filter((i) => steps[i]!.does === 'take');
  const takeOf = new Map(takes.map((i) => [steps[i]!.call, i]));
  const takesOf = groupBy(takes, (i) => steps[i]!.call.asked.chain);
  /** The take of each token by the call that had the key alone. */
  const writeOf = new Map<number | null, number>();
  for (const i of [...takes].reverse()) if (steps[i]!.call.asked.mode === 'alone') writeOf.set(steps[i]!.token, i);
  const refusals = indexes.filter((i) => steps[i]!.does === 'refuse');
  const done = new Uint8Array(steps.length);
  const tried = new Set<string>();
  let stuck: { step: Step; depth: number } | undefined;
  let tries = 0;
  /** The first that is not done, and the last that has ever been. */
  let first = 0;
  let last = 0;

  /**
   * Those that may come next: they began before any that is not done had to be over. The one that must be over first comes first. Of these only:
   * - a step after which nothing is harder, if there is one: a refusal that is right now, or an end that nobody needs to come later;
   * - of the calls that take the key with a token, those with the smallest one: after a larger token it has no place any more. A reader has that of the
   *   last write, and comes after it.
   */
  const candidates = (state: State): { list: number[]; next: Step | undefined } => {
    while (first < steps.length && done[first]) first++;
    let limit = Infinity;
    let next: Step | undefined;
    const open: number[] = [];
    for (let i = first; i < steps.length && steps[i]!.from <= limit; i++) {
      const step = steps[i]!;
      if (done[i]) continue;
      open.push(i);
      if (step.to < limit) [limit, next] = [step.to, step];
    }
    const ready = open.filter((i) => {
      const step = steps[i]!;
      return step.from <= limit && (step.does !== 'end' || done[takeOf.get(step.call)!] === 1);
    });
    const free = ready.find((i) => (steps[i]!.does === 'refuse' ? after(state, steps[i]!) : steps[i]!.does === 'end' && !isNeeded(i)));
    if (free !== undefined) return { list: [free], next };
    const tokens = ready.flatMap((i) => (hasOrder(steps[i]!) ? [steps[i]!.token!] : []));
    const smallest = tokens.reduce((least, token) => Math.min(least, token), Infinity);
    const list = ready.filter((i) => !hasOrder(steps[i]!) || (steps[i]!.token === smallest && !readsAhead(i)));
    return { list: list.sort((a, b) => steps[a]!.to - steps[b]!.to), next };
  };
  /** Whether the write that gave a reader its token is not done. */
  const readsAhead = (i: number): boolean => {
    const { call, token } = steps[i]!;
    const write = writeOf.get(token);
    return call.asked.mode === 'read' && write !== undefined && !done[write];
  };
  /** Whether a step that is to come may need its call to have the key still: a refusal, or a nested call. */
  const isNeeded = (end: number): boolean => {
    const { call, to } = steps[end]!;
    const others = [...refusals, ...(takesOf.get(call.asked.chain) ?? [])];
    return others.some((i) => !done[i] && steps[i]!.from <= to);
  };
  const nameOf = ({ token, holders }: State): string => {
    const ids = holders.map(({ asked }) => asked.id).sort();
    return `${first} ${done.subarray(first, last + 1).join('')} ${token} ${ids.join()}`;
  };

  interface Level {
    readonly state: State;
    readonly list: readonly number[];
    readonly first: number;
    at: number;
  }
  const enter = (state: State): Level | undefined => {
    const { list, next } = candidates(state);
    if (!next) return undefined;
    const name = nameOf(state);
    const isNew = !tried.has(name);
    tried.add(name);
    if (levels.length > (stuck?.depth ?? -1)) stuck = { step: next, depth: levels.length };
    return { state, list: isNew ? list : [], first, at: 0 };
  };
  const levels: Level[] = [];
  let level = enter({ holders: [], token: -Infinity });
  while (level) {
    const index = level.list[level.at++];
    if (index === undefined) {
      const before = levels.pop();
      if (!before) return stuck!.step;
      done[before.list[before.at - 1]!] = 0;
      first = before.first;
      level = before;
      continue;
    }
    const state = after(level.state, steps[index]!);
    if (!state) continue;
    if (++tries > MOST_TRIES) return 'undecided';
    done[index] = 1;
    last = Math.max(last, index);
    levels.push(level);
    level = enter(state);
  }
  return undefined;
}

/** It takes the key with a token that must not be smaller than those before. */
function hasOrder({ does, call, token }: Step): boolean {
  return does === 'take' && token !== null && call.asked.mode !== 'permits';
}

/** What a step makes of a key; `undefined`: it was not possible. */
function after({ holders, token }: State, step: Step): State | undefined {
  const { call } = step;
  const { asked } = call;
  if (step.does === 'end') return { holders: holders.filter((each) => each !== call), token };
  const others = holders.filter((each) => each.asked.chain !== asked.chain);
  if (step.does === 'refuse') return others.length > 0 ? { holders, token } : undefined;
  if (others.some((each) => each.asked.mode === 'alone' || asked.mode === 'alone')) return undefined;
  const permits = others.reduce((sum, each) => sum + (each.asked.count ?? 1), asked.count ?? 1);
  if (asked.mode === 'permits' && permits > asked.permits!) return undefined;
  const isNested = holders.length > others.length;
  if (step.token === null || asked.mode === 'permits') return { holders: [...holders, call], token };
  // A reader has the token of the last write.
  const isLarge = asked.mode === 'read' || isNested ? step.token >= token : step.token > token;
  if (!isLarge) return undefined;
  return { holders: [...holders, call], token: asked.mode === 'alone' ? step.token : token };
}

function violation(key: string, { does, call, token, to }: Step): Violation {
  const { asked } = call;
  const what = {
    take: `${asked.id} (${asked.mode}, token ${token}) has it`,
    end: `${asked.id} has given it back`,
    refuse: `${asked.id} is refused`,
  }[does];
  return { oracle: 'order', guarantee: 'G2', kind: asked.kind, key, at: to, what: `there is no order of events in which ${what}` };
}
