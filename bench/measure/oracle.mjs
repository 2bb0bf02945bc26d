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
export function overlaps(parts) {
  const sections = parts.flatMap((times) => Array.from({ length: times.length / 2 }, (_, i) => [times[2 * i], times[2 * i + 1]]));
  sections.sort(([a], [b]) => a - b);
  let count = 0;
  let end = -Infinity;
  for (const [start, until] of sections) {
    if (start < end) count++;
    end = Math.max(end, until);
  }
  return count;
}
