import type { DoctorCheck } from '../../core/model/doctor-report.js';
import type { LeaseDriver } from '../../core/store/lease-driver.js';
import { checkOf } from '../../core/store/store-doctor.js';
import { now } from '../../core/util/clock.js';

const REQUESTS = 200;
/** Milliseconds within which 99 of 100 requests should be answered. */
const SLOW = 50;
/** A lease is renewed three times within its length, and a renewal that fails is repeated. */
const KEY_TIMEOUT_PER_REQUEST = 10;
const SHORTEST_KEY_TIMEOUT = 1000;

export interface RoundTrips {
  readonly check: DoctorCheck;
  readonly leastKeyTimeout: number | null;
}

/**
 * Asks for the state of a key, one request after the other, for some milliseconds at most.
 *
 * @param times of requests that were made before, in milliseconds.
 */
export async function measureRoundTrips(mutex: LeaseDriver, key: string, within: number, times: readonly number[]): Promise<RoundTrips> {
  const all = [...times];
  const check = await checkOf({ id: 'round-trips', name: 'time of a request', touches: ['G4', 'G9'] }, async () => {
    const end = now() + within;
    for (let i = 0; i < REQUESTS && (i === 0 || now() < end); i++) {
      const start = now();
      await mutex.check({ key, owner: 'nobody' });
      all.push(now() - start);
    }
    all.sort((a, b) => a - b);
    const at = (share: number): string => inWords(all[Math.ceil(share * all.length) - 1]!);
    const seen = `${all.length} requests: p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}; use a keyTimeout of ${leastOf(all).toLocaleString('en-US')} ms or more`;
    if (all[Math.ceil(0.99 * all.length) - 1]! <= SLOW) return { seen };
    return { state: 'warn', seen, advice: 'Use a store that is nearer or less busy, or a longer keyTimeout and requestTimeout.' };
  });
  return { check, leastKeyTimeout: check.state === 'unknown' ? null : leastOf(all) };
}

function leastOf(times: readonly number[]): number {
  return Math.max(SHORTEST_KEY_TIMEOUT, Math.ceil((KEY_TIMEOUT_PER_REQUEST * Math.max(...times)) / 100) * 100);
}

function inWords(milliseconds: number): string {
  return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}
