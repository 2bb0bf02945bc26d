import { waitGraph, type KeyReport } from 'nestjs-distributed-lock/core';
import { random, seed } from '../support/random.js';

/** Permits of a key: a mutex, a semaphore, or a read/write lock, whose readers take one of very many and whose writers all. */
type KeyOf = { readonly name: string; readonly kind: KeyReport['kind']; readonly permits: number };

interface Hold {
  readonly key: KeyOf;
  readonly permits: number;
  readonly uuid: string;
}

interface Chain {
  readonly label: string;
  /** What it believes to hold: some of it may be lost. */
  readonly believes: Hold[];
  waits: { readonly key: KeyOf; readonly permits: number } | undefined;
}

const KEYS: KeyOf[] = [
  { name: 'a', kind: 'mutex', permits: Infinity },
  { name: 'b', kind: 'mutex', permits: Infinity },
  { name: 's', kind: 'semaphore', permits: 3 },
  { name: 'r', kind: 'read/write lock', permits: Infinity },
];
const below = (n: number): number => Math.floor(random() * n);
const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;

/** A random history of a few chains that take keys one after the other, give them back, wait, and lose leases. */
class History {
  readonly chains: Chain[] = Array.from({ length: 2 + below(4) }, (_, n) => ({ label: `chain ${n}`, believes: [], waits: undefined }));
  /** What the stores have. */
  holds: Hold[] = [];
  private uuids = 0;

  constructor(steps: number) {
    for (let step = 0; step < steps; step++) this.step(pick(this.chains));
  }

  fits({ key, permits }: NonNullable<Chain['waits']>, among = this.holds): boolean {
    const taken = among.filter((hold) => hold.key === key);
    if (permits === Infinity || taken.some((hold) => hold.permits === Infinity)) return taken.length === 0;
    return taken.reduce((sum, hold) => sum + hold.permits, permits) <= key.permits;
  }

  private step(chain: Chain): void {
    const what = below(10);
    const lost = pick(chain.believes);
    if (what === 0 && chain.believes.length > 0) this.holds = this.holds.filter((hold) => hold !== lost);
    if (what === 1 && !chain.waits && chain.believes.length > 0) {
      this.holds = this.holds.filter((hold) => !chain.believes.includes(hold));
      chain.believes.length = 0;
    }
    if (what < 2) return;
    if (!chain.waits) {
      const key = pick(KEYS);
      const permits = key.kind === 'semaphore' ? 1 + below(3) : key.kind === 'mutex' || below(2) === 0 ? Infinity : 1;
      chain.waits = { key, permits };
    }
    if (!this.fits(chain.waits)) return;
    const hold = { ...chain.waits, uuid: `uuid-${this.uuids++}` };
    this.holds.push(hold);
    chain.believes.push(hold);
    chain.waits = undefined;
  }

  /** @param isReported whether the processes report their callers; otherwise the store knows the chain of each. */
  reports(isReported: boolean): KeyReport[] {
    const since = new Date(0);
    const of = (uuid: string) => ({ owner: `app@host:1:${uuid}`, app: 'app', host: 'host', pid: 1, since });
    return KEYS.map((key) => {
      const holders = this.holds
        .filter((hold) => hold.key === key)
        .map(({ uuid, permits }) => ({ ...of(uuid), phase: 'held' as const, remaining: 1, permits }));
      const waiters = this.chains
        .filter(({ waits }) => waits?.key === key)
        .map(({ label, believes, waits }) => {
          const holding = believes.map((hold) => ({ key: hold.key.name, uuid: hold.uuid }));
          const report = { label, since, fencingToken: null, patienceLeft: 1_000, waiting: 1, oldestWait: 0, holding };
          return { ...of(label), permits: waits!.permits, isHeard: true, holding, ...(isReported && { report: [report] }) };
        });
      const { name, kind, permits } = key;
      const known = { key: name, kind, at: since, fencingToken: null, remaining: 1, ...(permits < Infinity && { permits }) };
      return { ...known, holders, holderCount: holders.length, waiters, waiterCount: waiters.length };
    });
  }

  /** By trying: a chain that waits for nothing ends, then each that gets what it waits for, and so on. The rest that waits in circles is in a deadlock. */
  deadlocks(): string[] {
    let holds = this.holds;
    const stuck = new Set(this.chains);
    for (let isDone = false; !isDone;) {
      isDone = true;
      for (const chain of stuck) {
        if (chain.waits && !this.fits(chain.waits, holds)) continue;
        holds = holds.filter((hold) => !chain.believes.includes(hold));
        stuck.delete(chain);
        isDone = false;
      }
    }
    const all = [...stuck];
    const waitsFor = (one: Chain, other: Chain) => holds.some((hold) => hold.key === one.waits?.key && other.believes.includes(hold));
    const reaches = all.map((one) => all.map((other) => waitsFor(one, other)));
    for (const k of all.keys())
      for (const i of all.keys()) for (const j of all.keys()) reaches[i]![j] ||= reaches[i]![k]! && reaches[k]![j]!;
    const circles = all.map((_, i) => all.filter((_chain, j) => reaches[i]![j] && reaches[j]![i]).map(({ label }) => label));
    return [...new Set(circles.filter((circle) => circle.length > 0).map((circle) => circle.sort().join(', ')))].sort();
  }
}

describe('waitGraph', () => {
  it('finds exactly the deadlocks of 1,000 random histories, in which leases are lost', () => {
    let found = 0;
    for (let run = 0; run < 1_000; run++) {
      const history = new History(5 + below(25));
      const expected = history.deadlocks();
      const named = waitGraph(history.reports(true)).map(({ members }) => members.map(({ label }) => label).sort().join(', ')); // prettier-ignore
      if (named.sort().join('; ') !== expected.join('; '))
        throw new Error(`Seed ${seed}, run ${run}: ${named.join('; ')}, not ${expected.join('; ')}`);
      if (waitGraph(history.reports(false)).length !== expected.length)
        throw new Error(`Seed ${seed}, run ${run}: another result without the callers of the processes`);
      found += expected.length;
    }
    expect(found).toBeGreaterThan(50);
  });

  it('says who holds what in the order in which they wait, when it ends by itself, and what to do', () => {
    const since = new Date(0);
    const at = (key: string, holder: string, waiter: string, holding: string[], patienceLeft: number): KeyReport => {
      const of = (uuid: string) => ({ owner: `shop@pod:7:${uuid};trace-span`, app: 'shop', host: 'pod', pid: 7, since });
      const held = holding.map((each) => ({ key: each, uuid: waiter }));
      const report = [{ label: `Shop.${waiter}`, since, fencingToken: null, patienceLeft, waiting: 1, oldestWait: 5, holding: held }];
      return {
        ...{ key, kind: 'mutex', at: since, fencingToken: 1, remaining: 1 },
        ...{ holders: [{ ...of(holder), phase: 'held', remaining: 1, permits: Infinity }], holderCount: 1 },
        ...{ waiters: [{ ...of(waiter), permits: Infinity, isHeard: true, holding: held, report }], waiterCount: 1 },
      };
    };
    const keyReports = [at('x', 'one', 'three', ['z'], 900), at('y', 'two', 'one', ['x'], 500), at('z', 'three', 'two', ['y'], 700)];
    expect(waitGraph(keyReports)).toEqual([
      {
        keys: ['x', 'y', 'z'],
        members: [
          { app: 'shop', host: 'pod', pid: 7, label: 'Shop.three', holds: ['z'], waitsFor: 'x' },
          { app: 'shop', host: 'pod', pid: 7, label: 'Shop.one', holds: ['x'], waitsFor: 'y' },
          { app: 'shop', host: 'pod', pid: 7, label: 'Shop.two', holds: ['y'], waitsFor: 'z' },
        ],
        endsIn: 500,
        advice: expect.stringContaining('one order'),
      },
    ]);
    // As many as there are in no hurry to end: a chain of them, and a ring.
    const names = Array.from({ length: 10_000 }, (_, n) => String(n));
    const line = names.slice(1).map((name, n) => at(name, name, String(n), [String(n)], 1));
    expect(waitGraph(line)).toEqual([]);
    expect(waitGraph(line.toReversed())).toEqual([]);
    expect(waitGraph([...line, at('0', '0', '9999', ['9999'], 1)])).toMatchObject([{ endsIn: 1, keys: { length: 10_000 } }]);
    expect(waitGraph([])).toEqual([]);
    expect(waitGraph(keyReports.slice(1))).toEqual([]);
  });
});
