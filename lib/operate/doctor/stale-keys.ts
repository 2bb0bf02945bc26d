import type { DoctorCheck } from '../../core/model/doctor-report.js';
import type { Inspector, KeyState } from '../../core/store/inspector.js';
import type { LeaseDriver } from '../../core/store/lease-driver.js';
import { checkOf, type Finding } from '../../core/store/store-doctor.js';
import { now } from '../../core/util/clock.js';

const HOUR = 3_600_000;
/** Milliseconds to look for keys. */
const LONGEST_SEARCH = 2000;
const BATCH = 64;
/** Milliseconds by which a fencing token may be ahead of the clock from which it is made. */
const MOST_AHEAD = 1000;
const EXAMPLES = 3;

/** Finds keys in a state that no lock leaves behind, and fencing tokens ahead of the clock. Never rejects. */
export async function checkKeys(inspector: Inspector, mutex: LeaseDriver, prefix: string): Promise<DoctorCheck[]> {
  const found = look(inspector, prefix);
  return Promise.all([
    checkOf({ id: 'keys', name: 'keys that are used', touches: ['G7'] }, async () => keysOf(await found)),
    checkOf({ id: 'fences', name: 'fencing tokens against the clock', touches: ['G2'] }, async () => fencesOf(await found, mutex)),
  ]);
}

interface Found {
  readonly states: readonly KeyState[];
  readonly isWhole: boolean;
}

async function look(inspector: Inspector, prefix: string): Promise<Found> {
  const states = new Map<string, KeyState>();
  const end = now() + LONGEST_SEARCH;
  for await (const keys of inspector.keys(prefix, false)) {
    const fresh = keys.filter((key) => !states.has(key));
    for (let i = 0; i < fresh.length; i += BATCH) {
      for (const state of await inspector.inspect(fresh.slice(i, i + BATCH))) states.set(state.key, state);
    }
    if (now() > end) return { states: [...states.values()], isWhole: false };
  }
  return { states: [...states.values()], isWhole: true };
}

function keysOf({ states, isWhole }: Found): Finding {
  const endless = states.filter(({ kind, remaining }) => kind !== 'free' && remaining === null);
  const old = states.filter(({ at, holders }) => holders.some(({ since }) => since !== null && at - since > HOUR));
  const dead = states.filter(({ waiters }) => waiters.length > 0 && waiters.every(({ isHeard }) => !isHeard));
  const problems = [
    `${states.filter(({ kind }) => kind !== 'free').length} keys in use${isWhole ? '' : `, as far as was looked in ${LONGEST_SEARCH} ms`}`,
    ...(endless.length > 0 ? [`never ends: ${namesOf(endless)}`] : []),
    ...(old.length > 0 ? [`held for more than an hour: ${namesOf(old)}`] : []),
    ...(dead.length > 0 ? [`only processes wait that are gone: ${namesOf(dead)}`] : []),
  ];
  const seen = problems.join('; ');
  const advice = 'Look at them with ndl show <key>.';
  if (endless.length > 0) return { state: 'bad', seen, advice: `${advice} A value without an expiry was written by another program.` };
  return problems.length > 1 ? { state: 'warn', seen, advice } : { seen };
}

function fencesOf({ states }: Found, mutex: LeaseDriver): Finding {
  const timed = states.flatMap(({ key, at, fencingToken }) => {
    const time = fencingToken === null ? undefined : mutex.timeOf?.(fencingToken).getTime();
    return time === undefined ? [] : [{ key, ahead: time - at }];
  });
  if (timed.length === 0) return { seen: 'none is known' };
  const late = timed.filter(({ ahead }) => ahead > MOST_AHEAD);
  if (late.length === 0) return { seen: `${timed.length}, none ahead of the clock` };
  const most = Math.max(...late.map(({ ahead }) => ahead));
  return {
    state: 'bad',
    seen: `ahead of the clock by up to ${Math.round(most).toLocaleString('en-US')} ms: ${namesOf(late)}`,
    advice:
      'The clock of the server was set back. A key that is not used for an hour could get a smaller token than before. Let NTP slew the clock, and not step it.',
    limits: { purpose: 'efficiency', because: 'its clock was set back, so that fencing tokens could fall' },
  };
}

function namesOf(all: readonly { readonly key: string }[]): string {
  const names = all.slice(0, EXAMPLES).map(({ key }) => key);
  return [...names, ...(all.length > EXAMPLES ? [`and ${all.length - EXAMPLES} more`] : [])].join(', ');
}
