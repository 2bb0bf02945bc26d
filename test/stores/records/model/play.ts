import { explore } from './explore.js';
import { LatchWorld, type LatchScenario } from './latch-world.js';
import { LeaseWorld, type Scenario } from './lease-world.js';
import type { Misfortune } from './step-world.js';
import { stopTheClock } from './stopped-clock.js';

stopTheClock();

/** `'0QR 1AR'`: an owner in process 0 that queues and releases, and one in process 1 that tries and releases. A number behind it: its permits. */
function ownersOf(text: string): Scenario['owners'] {
  return text.split(' ').map((owner) => {
    const [, process, script = '', count = 1] = /^(\d)([A-Z]+)(\d?)$/.exec(owner)!;
    return { process: Number(process), script, count: Number(count || 1) };
  });
}

export const lease = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<number> =>
  explore(() => new LeaseWorld({ owners: ownersOf(owners), ...rest }).begin());
const latch = (actors: string, rest: Omit<LatchScenario, 'actors'>): Promise<number> =>
  explore(() => new LatchWorld({ actors: ownersOf(actors), ...rest }).begin());

const SCRIPTS = ['AR', 'QR', 'QQR', 'QL', 'QNR', 'QK'];
const pairs = SCRIPTS.flatMap((one, index) => SCRIPTS.slice(index).map((other) => [one, other] as const));

/** Each pair of scripts. @param processes those of the two owners. */
export function pairsHold(processes: readonly [number, number]): void {
  it.each(pairs)(`with %s and %s, in the processes ${processes.join(' and ')}`, async (one, other) => {
    expect(await lease(`${processes[0]}${one} ${processes[1]}${other}`)).toBeGreaterThan(40);
  });
}

export function leasesHold(
  scenarios: readonly (readonly [owners: string, misfortune: Misfortune, atLeast: number])[],
  permits?: number,
): void {
  it.each(scenarios)('with %s and %j', async (owners, misfortune, atLeast) => {
    expect(await lease(owners, { ...misfortune, permits })).toBeGreaterThan(atLeast);
  });
}

export function latchesHold(
  scenarios: readonly (readonly [actors: string, count: number, misfortune: Misfortune, atLeast: number])[],
): void {
  it.each(scenarios)('with %s of %d and %j', async (actors, count, misfortune, atLeast) => {
    expect(await latch(actors, { count, ...misfortune })).toBeGreaterThan(atLeast);
  });
}
