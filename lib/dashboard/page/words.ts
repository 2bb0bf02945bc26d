/** How numbers and times are written. */

const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000]] as const; // prettier-ignore

/** `41 min`, of milliseconds. */
export function span(length: number | null | undefined): string {
  if (length == null) return '–';
  const [name, unit] = UNITS.find(([, least]) => length >= least) ?? ['s', 1_000];
  return `${Math.max(0, Math.floor(length / unit))} ${name}`;
}

/** `7.1 s`, where tenths matter. */
export function exactSpan(length: number | null): string {
  if (length === null || length >= 60_000) return span(length);
  return length < 1_000 ? `${Number(length.toFixed(length < 10 ? 1 : 0))} ms` : `${(length / 1_000).toFixed(1)} s`;
}

export function timeOf(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}
