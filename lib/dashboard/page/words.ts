/** How numbers and times are written. */

const UNITS: readonly [name: string, length: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** `41 min`, of milliseconds. */
export function span(length: number | null | undefined): string {
  if (length == null) return '–';
  const [name, unit] = UNITS.find(([, least]) => length >= least) ?? ['s', 1_000];
  return `${Math.max(0, Math.floor(length / unit))} ${name}`;
}

/** `7.1 s`, where tenths of seconds matter. */
export function exactSpan(length: number | null): string {
  if (length === null) return '–';
  if (length < 1_000) return `${Math.max(0, Math.round(length))} ms`;
  return length < 60_000 ? `${(length / 1_000).toFixed(1)} s` : span(length);
}

export function timeOf(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}

export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
