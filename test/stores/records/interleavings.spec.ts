// Everything that can happen, in every order: who asks, whose request arrives, whose reply, what is lost, who dies. With the real desk.
import { explore, type Explored } from './model/explore.js';
import { LatchWorld, type LatchScenario } from './model/latch-world.js';
import { LeaseWorld, type Scenario } from './model/lease-world.js';
import type { Apply } from './model/step-table.js';
import type { Misfortune } from './model/step-world.js';
import { stopTheClock } from './model/stopped-clock.js';
import { VOID } from '../../../lib/stores/records/record.table.js';

jest.setTimeout(120_000);
stopTheClock();

/** `'0QR 1AR'`: an owner in process 0 that queues and releases, and one in process 1 that tries and releases. A number behind it: its permits. */
function ownersOf(text: string): Scenario['owners'] {
  return text.split(' ').map((owner) => {
    const [, process, script = '', count = 1] = /^(\d)([A-Z]+)(\d?)$/.exec(owner)!;
    return { process: Number(process), script, count: Number(count || 1) };
  });
}

const lease = (owners: string, rest: Omit<Scenario, 'owners'> = {}): Promise<Explored> =>
  explore(() => LeaseWorld.start({ owners: ownersOf(owners), ...rest }));
const latch = (actors: string, rest: Omit<LatchScenario, 'actors'>): Promise<Explored> =>
  explore(() => LatchWorld.start({ actors: ownersOf(actors), ...rest }));

const total = { states: 0, interleavings: 0, runs: 0 };
function add({ states, interleavings, runs }: Explored): void {
  total.states += states;
  total.interleavings += interleavings;
  total.runs += runs;
}

describe('whatever the order, a mutex on records keeps its promises (G2, G4, G6, G7, G8)', () => {
  const SCRIPTS = ['AR', 'QR', 'QQR', 'QL', 'QNR', 'QK'];
  const pairs = SCRIPTS.flatMap((one, index) => SCRIPTS.slice(index).map((other) => [one, other] as const));

  it.each(pairs)('with %s and %s, in one process and in two', async (one, other) => {
    add(await lease(`0${one} 0${other}`));
    const explored = await lease(`0${one} 1${other}`);
    expect(explored.states).toBeGreaterThan(90);
    add(explored);
  });

  it.each<[string, Misfortune, atLeast: number]>([
    ['0AR 0AR', { failures: 1 }, 600],
    ['0QQR 0QQR', { failures: 1 }, 1000],
    ['0QNR 0QR', { failures: 1 }, 600],
    ['0AR 1AR', { failures: 1 }, 1000],
    ['0AL 1QL', { failures: 1 }, 800],
    ['0QQR 1QQR', { crashes: 1 }, 700],
    ['0A 1QL', { failures: 1, crashes: 1 }, 500],
    ['0AR 1AR', { crashes: 1, pauses: 1 }, 1000],
    ['0AR 1AR', { isCold: true, pauses: 1 }, 1000],
    ['0QNR 1QR', { pauses: 1 }, 1000],
    ['0QR 0Q 1QR', {}, 1000],
    ['0A 0AR 1A 1AR', {}, 300],
    ['0Q 0Q 1QR 1A', {}, 300],
  ])('with %s and %p', async (owners, misfortune, atLeast) => {
    const explored = await lease(owners, misfortune);
    expect(explored.states).toBeGreaterThan(atLeast);
    add(explored);
  });
});

describe('whatever the order, a semaphore of two permits keeps its promises', () => {
  it.each<[string, Misfortune, atLeast: number]>([
    ['0QR2 1QQR1', {}, 100],
    ['0QR1 1QR2 1A1', {}, 300],
    ['0AR1 1QL2', { failures: 1 }, 1000],
    ['0QR1 1QQR2', { crashes: 1 }, 300],
  ])('with %s and %p', async (owners, misfortune, atLeast) => {
    const explored = await lease(owners, { ...misfortune, permits: 2 });
    expect(explored.states).toBeGreaterThan(atLeast);
    add(explored);
  });
});

describe('whatever the order, a count-down latch on records keeps its promises', () => {
  it.each<[string, LatchScenario['count'], Misfortune, atLeast: number]>([
    ['0SD 1D', 3, { failures: 1 }, 300],
    ['0S 1SD', 2, { failures: 1 }, 300],
    ['0SD 1WL', 1, { failures: 1 }, 300],
    ['0SD 1D 1W', 2, {}, 100],
    ['0SD 1DWL', 2, { crashes: 1 }, 100],
  ])('with %s of %d and %p', async (actors, count, misfortune, atLeast) => {
    const explored = await latch(actors, { count, ...misfortune });
    expect(explored.states).toBeGreaterThan(atLeast);
    add(explored);
  });
});

describe('the model finds', () => {
  const versionOf = (table: Parameters<Apply>[1], key: string): string => table.data.rows.get(key)?.version ?? VOID;

  it('a table that compares no versions', async () => {
    const apply: Apply = (change, table, make) =>
      make((change.expected && { ...change, expected: versionOf(table, change.key) }) || change);
    await expect(lease('0AR 1AR', { apply })).rejects.toThrow('hold the key at the same time');
  });

  it('a table that takes for void what has not ended', async () => {
    const apply: Apply = (change, table, make) =>
      make(change.expected === VOID ? { ...change, expected: versionOf(table, change.key) } : change);
    await expect(lease('0AR 1AR', { apply })).rejects.toThrow('is told that it was lost');
  });

  it('a table whose versions begin anew when the key was free', async () => {
    const apply: Apply = (change, table, make) => {
      const { rows } = table.data;
      const last = Number(rows.get(change.key)?.version ?? 0);
      const found = make(change);
      if (!found.written) return found;
      const version = String(change.record === null ? 0 : last + 1);
      rows.set(change.key, { ...rows.get(change.key)!, version });
      return { ...found, version };
    };
    await expect(lease('0AR 1AR', { apply, failures: 1 })).rejects.toThrow('has ended, and has the key');
  });

  it('a table that says that it has made a change, and has not', async () => {
    const apply: Apply = (change, _table, make) => {
      const found = make(change);
      return change.expected === undefined || found.written ? found : { ...found, written: true };
    };
    await expect(lease('0AR 1AR', { apply })).rejects.toThrow('of another grant');
  });

  it('a table that gives tokens again', async () => {
    const apply: Apply = (change, table, make) => {
      const found = make({ ...change, tokens: 0 });
      return found.written ? { ...found, fence: Math.max(table.time * 1000, found.fence) } : found;
    };
    await expect(lease('0AR 1AR', { apply })).rejects.toThrow('of another grant');
  });

  it('a table that drops messages', async () => {
    const apply: Apply = (change, _table, make) => make({ ...change, messages: [] });
    await expect(lease('0QR 1QQR', { apply })).rejects.toThrow('and not told');
  });
});

it('has tried many of them', () => {
  process.stderr.write(`${JSON.stringify(total)}\n`);
  expect(total.states).toBeGreaterThan(35_000);
});
