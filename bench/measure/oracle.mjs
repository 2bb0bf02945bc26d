// Two sections of one key must not overlap, in whatever processes they ran: each notes its begin and its end on the machine's clock.
import { clock } from './clock.mjs';

/** Notes the sections of one key. */
export class Sections {
  #times = new Float64Array(1024);
  #length = 0;

  async run(work) {
    const start = clock();
    await work?.();
    this.note(start, clock());
  }

  note(start, end) {
    if (this.#length === this.#times.length) {
      const longer = new Float64Array(this.#times.length * 2);
      longer.set(this.#times);
      this.#times = longer;
    }
    this.#times[this.#length++] = start;
    this.#times[this.#length++] = end;
  }

  get count() {
    return this.#length / 2;
  }

  /** begin, end, begin, end, … */
  get times() {
    return this.#times.slice(0, this.#length);
  }
}

/**
 * How many sections began before an earlier one had ended.
 *
 * @param {Float64Array[]} parts what several processes noted of one key.
 */
export const overlaps = (parts) =>
  crowded(
    parts.map((times) => ({ times, weight: 1 })),
    1,
  );

/**
 * How many sections began when, with all that were under way, they weighed more than the limit.
 *
 * @param {{ times: Float64Array, weight: number }[]} parts what several processes noted of one key. `Infinity`: as much as the limit.
 */
export function crowded(parts, limit) {
  const turns = parts.flatMap(({ times, weight }) =>
    Array.from(times, (at, i) => ({ at, weight: Math.min(weight, limit) * (i % 2 === 0 ? 1 : -1) })),
  );
  // An end in the instant of another begin comes first.
  turns.sort((a, b) => a.at - b.at || a.weight - b.weight);
  let count = 0;
  let load = 0;
  for (const { weight } of turns) {
    load += weight;
    if (weight > 0 && load > limit) count++;
  }
  return count;
}
