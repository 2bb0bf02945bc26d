import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from '../../support/redis-server.js';
import { startClock } from '../clock/clock.js';
import { faultsOf } from '../faults/all.js';
import { JUMP } from '../faults/clock.js';
import { isLossy, type Group, type Strike } from '../faults/fault.js';
import { plan } from '../faults/plan.js';
import { now } from '../history/clock.js';
import type { Entry, Kind } from '../history/entry.js';
import { watchLag } from '../history/lag-watch.js';
import { readHistory } from '../history/read.js';
import { HistoryWriter } from '../history/writer.js';
import { judge } from '../oracles/all.js';
import { RowExclusion } from '../oracles/rows.js';
import type { Facts, Violation } from '../oracles/oracle.js';
import { Random } from '../random.js';
import { stores } from '../stores.js';
import type { Leftover, Stage } from '../stores/store.js';
import { fencedTotals } from '../worker/fenced-counter.js';
import { Scene } from './scene.js';

export interface RunOptions {
  seed: string;
  /** ms in which faults strike */
  length: number;
  kinds: Kind[];
  groups: Group[];
  store: string;
  workers: number;
  break?: string;
}

export interface RunResult {
  options: RunOptions;
  folder: string;
  history: Entry[];
  facts: Facts;
  violations: Violation[];
}

/** ms: after the last fault the load goes on for so long. */
const QUIET = 1_500;
/** ms: the longest keyTimeout and the longest offer, within which all that expires is gone. */
const EXPIRY = 6_500;

/** One run: load, faults, drain, judgement. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, length, kinds, groups, store, workers } = options;
  const random = new Random(seed);
  const folder = mkdtempSync(join(tmpdir(), 'chaos-'));
  const history = new HistoryWriter(join(folder, 'chaos.jsonl'), 'chaos');
  const { startStage } = await stores[store]!.stage();
  const stage = await startStage({ groups, slots: workers, random: random.fork('stage') });
  const resource = await startRedis();
  const count = stage.isPrivate ? 1 : workers;
  const clocks = groups.includes('clock') ? await Promise.all(Array.from({ length: count }, startClock)) : [];
  const slots = Array.from({ length: count }, (_, index) => {
    return { index, seed, folder, kinds, store, break: options.break, env: clocks[index]?.env };
  });
  const scene = new Scene(stage, resource, history, slots, (slot, ms) => clocks[slot]?.set(ms));
  const ofRows: Violation[] = [];
  const watches = [watchLag(history), watchRows(stage, ofRows)];
  try {
    await scene.startWorkers();
    await strikeAll(scene, plan(random.fork('plan'), faultsOf(groups, stage), length, count), length);
    await stage.heal?.();
    await Promise.all(stage.proxies?.map((proxy) => proxy.heal()) ?? []);
    history.write({ e: 'calm' });
    await scene.pause(QUIET);
    await scene.closeWorkers();
    const facts: Facts = {
      lossy: groups.some(isLossy),
      knowsDeaths: stage.knowsDeaths,
      fenced: await fencedTotals(resource.client()),
      leftovers: await leftoversOf(scene, EXPIRY + (groups.some((group) => /^clock-/.test(group)) ? JUMP : 0)),
    };
    const entries = readHistory(folder);
    const violations = [...(facts.lossy ? [] : ofRows), ...judge(entries, facts)];
    return { options, folder, history: entries, facts, violations };
  } finally {
    for (const watch of watches) clearInterval(watch);
    await scene.stop();
    history.close();
  }
}

/** Asks the store once a second who holds what. A server that is away answers later, or never. */
function watchRows(stage: Stage, violations: Violation[]): NodeJS.Timeout {
  const exclusion = new RowExclusion();
  const look = async (): Promise<void> => {
    const seen = await stage.lasting?.();
    for (const row of seen?.records ?? []) violations.push(...exclusion.look(row, seen!.time, now()));
  };
  return setInterval(() => void look().catch(() => undefined), 1_000);
}

async function strikeAll(scene: Scene, strikes: readonly Strike[], length: number): Promise<void> {
  const start = performance.now();
  const running: Promise<void>[] = [];
  for (const [n, strike] of strikes.entries()) {
    await scene.pause(start + strike.at - performance.now());
    running.push(scene.strike(n, strike));
  }
  await scene.pause(start + length - performance.now());
  await Promise.all(running);
}

async function leftoversOf({ stage, pidsOfKilled }: Scene, within: number): Promise<Leftover[]> {
  const end = performance.now() + within;
  for (;;) {
    const leftovers = await stage.leftovers(pidsOfKilled);
    if (leftovers.length === 0 || performance.now() > end) return leftovers;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
