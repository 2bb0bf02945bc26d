import { MEASURES, type Measure, type Sample } from './sample.js';

/** The growth of a measure in a whole phase that counts as noise, beside a part of its mean. */
const TOLERANCE: Record<Measure, number> = { heap: 3, handles: 8, listeners: 1, subscriptions: 1, keys: 20 };
const PART = 0.05;
/** The beginning, in which caches fill and code is compiled, is not judged. */
const WARM_UP = 0.3;

export interface Verdict {
  measure: Measure;
  mean: number;
  /** by a straight line through the samples, over the time that is judged */
  growth: number;
  isFlat: boolean;
}

/** Whether a straight line through the samples is flat, for each measure. */
export function judgeSamples(samples: readonly Sample[]): Verdict[] {
  const judged = samples.slice(Math.floor(samples.length * WARM_UP));
  const times = judged.map(({ at }) => at);
  return MEASURES.map((measure) => {
    const values = judged.map((sample) => sample[measure]);
    const mean = average(values);
    const growth = slope(times, values) * (times.at(-1)! - times[0]!);
    return { measure, mean, growth, isFlat: growth <= TOLERANCE[measure] + PART * mean };
  });
}

/** The slope of the line with the least squares. */
function slope(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [average(x), average(y)];
  const square = x.reduce((sum, value) => sum + (value - meanX) ** 2, 0);
  return square === 0 ? 0 : x.reduce((sum, value, i) => sum + (value - meanX) * (y[i]! - meanY), 0) / square;
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
