import type { KeyEvent } from '../core/model/key-report.js';
import type { Costly, Numbers } from './dashboard.protocol.js';

const MINUTE = 60;
const FIVE = 5;
/** Labels with the most waiting time that are named, and those that are counted. */
const NAMED = 5;
const MOST_LABELS = 1_000;

/** Sums of the events of the last minutes. */
export class Sums {
  /** One for each second of the last minute. */
  private readonly waitP95: number[] = [];
  private waits: number[] = [];
  /** The waiting time of each label in each of the last five minutes, the last one first. */
  private readonly waited: Map<string, number>[] = [new Map<string, number>()];
  private seconds = 0;

  add({ event, waited, label = '–' }: KeyEvent): void {
    if (waited === undefined || !['acquired', 'timeout', 'aborted'].includes(event)) return;
    if (event === 'acquired') this.waits.push(waited);
    const [minute] = this.waited as [Map<string, number>];
    if (waited > 1 && (minute.has(label) || minute.size < MOST_LABELS)) minute.set(label, (minute.get(label) ?? 0) + waited);
  }

  /** Ends a second. */
  beat(): void {
    const sorted = this.waits.sort((a, b) => a - b);
    this.waits = [];
    this.waitP95.push(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] ?? -1);
    if (this.waitP95.length > MINUTE) this.waitP95.shift();
    if (++this.seconds % MINUTE > 0) return;
    this.waited.unshift(new Map());
    this.waited.splice(FIVE);
  }

  get highestWait(): Numbers['waitP95'] {
    const highest = Math.max(-1, ...this.waitP95);
    return highest < 0 ? null : highest;
  }

  get costly(): Costly[] {
    const all = new Map<string, number>();
    for (const [label, waited] of this.waited.flatMap((minute) => [...minute])) all.set(label, (all.get(label) ?? 0) + waited);
    const sorted = [...all].sort(([, a], [, b]) => b - a).slice(0, NAMED);
    return sorted.map(([label, waited]) => ({ label, waited: Math.round(waited) }));
  }
}
