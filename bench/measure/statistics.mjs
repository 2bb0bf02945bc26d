/** Between two samples it is interpolated: the median of two numbers is their mean. */
export function quantile(samples, q) {
  if (samples.length === 0) return undefined;
  const sorted = Float64Array.from(samples).sort();
  const at = q * (sorted.length - 1);
  const below = Math.floor(at);
  return sorted[below] + (sorted[Math.ceil(at)] - sorted[below]) * (at - below);
}

export const median = (samples) => quantile(samples, 0.5);

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** The median of each number that at least one round has. */
export function medians(rounds) {
  const names = new Set(rounds.flatMap((round) => Object.keys(round).filter((name) => Number.isFinite(round[name]))));
  return Object.fromEntries([...names].map((name) => [name, median(rounds.map((round) => round[name]).filter(Number.isFinite))]));
}
