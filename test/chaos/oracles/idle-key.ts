import { JUMP } from '../faults/clock.js';
import { select } from '../history/read.js';
import { callsOf, groupBy, type CallStory } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { forcesOf, Standstills, timesOf, without, type Span } from './windows.js';

/** ms */
const SLACK = 400;
/** After an outage a store is usable within a second of the server's return. */
const RECOVERY = 1_000;
/** A queue entry is forgotten after a minute. */
const MEMORY = 60_000;

/**
 * G8: while somebody waits, a key is not idle for longer than two retryIntervals; after a fault also a keyTimeout, and a second for each waiter
 * ahead that is dead. Only times without faults count.
 */
export const idleKey: Oracle = (history) => {
  const end = select(history, 'closing')[0]?.t ?? history.at(-1)?.t ?? 0;
  const faults = timesOf(history, () => true, RECOVERY);
  const world: World = { end, faults, standstills: new Standstills(history), kills: select(history, 'killed').map(({ t }) => t) };
  const calls = callsOf(history);
  // The keys of a multi-lock are held, unseen, while it waits for the others.
  const unseen = new Set(calls.filter(({ asked }) => asked.keys.length > 1).flatMap(({ asked }) => asked.keys));
  const byKey = groupBy(calls, ({ asked }) => asked.keys[0]!);
  const jumps = timesOf(history, ({ group }) => group === 'clock-server', JUMP);
  return [...byKey]
    .filter(([key]) => !unseen.has(key))
    .flatMap(([key, ofKey]) => {
      const kept = forcesOf(history, key).map(({ from, keptUntil }) => ({ from, to: keptUntil }));
      // A `minHold` lasts longer if the server's clock is set back meanwhile.
      const keeping = ofKey.filter(({ asked, granted }) => asked.minHold > 0 && granted).map(({ granted }) => granted!.t);
      kept.push(...jumps.filter(({ from, to }) => keeping.some((t) => t >= from && t <= to - JUMP)));
      return idleTimes(key, ofKey, kept, world);
    });
};

interface World {
  end: number;
  faults: Span[];
  standstills: Standstills;
  kills: number[];
}

function idleTimes(key: string, calls: readonly CallStory[], kept: readonly Span[], world: World): Violation[] {
  const busy = calls.filter(({ granted }) => granted).map(busySpan);
  const waits = calls.map((call) => ({ call, from: call.asked.t, to: endOfWait(call, world.end) }));
  return without({ from: calls[0]!.asked.t, to: world.end }, [...busy, ...kept, ...world.faults]).flatMap((idle) => {
    if (idle.to - idle.from <= SLACK) return [];
    // One that waits through all of the time, however others come and go.
    for (const { call, from, to } of waits) {
      const start = Math.max(idle.from, from);
      const waited = Math.min(idle.to, to) - start;
      if (waited <= SLACK) continue;
      const bound = boundOf(call, calls, start, world);
      if (waited <= bound) continue;
      const what = `${call.asked.id} waits and the key is idle for ${waited.toFixed(0)} ms; ${bound.toFixed(0)} ms would be right`;
      return [{ oracle: 'liveness' as const, guarantee: 'G8', kind: call.asked.kind, key, at: start + bound, what }];
    }
    return [];
  });
}

function boundOf({ asked }: CallStory, calls: readonly CallStory[], start: number, { faults, kills, standstills }: World): number {
  const waiting = calls.filter(({ asked: other, granted, ended }) => other.t <= start && (granted ?? ended ?? { t: Infinity }).t > start);
  const longest = Math.max(...calls.map(({ asked: other }) => other.keyTimeout));
  const bound = 2 * Math.max(...waiting.map(({ asked: other }) => other.retryInterval), asked.retryInterval) + SLACK + mostHeldAfter(calls);
  const isDisturbed = [...faults.map(({ to }) => to), ...kills].some((time) => time > start - longest - 2_000 && time <= start);
  const dead = calls.filter(({ killed, granted, ended }) => killed !== undefined && !granted && !ended && killed > start - MEMORY).length;
  const extra = isDisturbed || dead > 0 ? longest + 1_000 * (dead + 1) : 0;
  return standstills.putOff(asked.w, start, start + bound + extra) - start;
}

function mostHeldAfter(calls: readonly CallStory[]): number {
  return Math.max(...calls.map(({ asked }) => asked.minHold));
}

/** A living holder keeps its key until its release is answered; a dead one until its validity is over, and that is a fault's aftermath. */
function busySpan({ granted, released, ended, releasing, signal, killed, claims }: CallStory): Span {
  const valid = Math.max(
    granted!.t + Math.max(...granted!.leases.map(({ remaining }) => remaining)),
    ...claims.map(({ t, remaining }) => t + Math.max(...remaining)),
  );
  const answered = released?.t ?? ended?.t ?? (killed === undefined ? Infinity : valid);
  // An answer that comes late does not keep the key.
  return { from: granted!.t, to: Math.max(Math.min(answered, (releasing?.t ?? Infinity) + RECOVERY), signal ? valid : 0) };
}

function endOfWait({ granted, ended, killed }: CallStory, end: number): number {
  return granted?.t ?? ended?.t ?? killed ?? end;
}
