/** How numbers, times and names are written. */

const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000]] as const; // prettier-ignore
const SECONDS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };
const LONGEST_NAME = 160;

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

/** A time; of another day than that of `now`, with its date. */
export function timeOf(at: number, now: number, hasSeconds = true): string {
  const date = new Date(at);
  const day = date.toDateString() === new Date(now).toDateString() ? {} : ({ day: 'numeric', month: 'short' } as const);
  const seconds = hasSeconds ? ({ second: '2-digit' } as const) : {};
  return date.toLocaleString(undefined, { hour12: false, hour: '2-digit', minute: '2-digit', ...seconds, ...day });
}

/** Milliseconds of `2h`, `1 h 30 min` or `until 17:00`; `null`: it is none of these. */
export function lengthOf(text: string, now: number): number | null {
  const [, hour, minute] = /^\s*until\s+(\d\d?):(\d\d)\s*$/i.exec(text) ?? [];
  if (hour !== undefined) {
    const end = new Date(now).setHours(Number(hour), Number(minute), 0, 0);
    return end > now ? end - now : new Date(end).setDate(new Date(end).getDate() + 1) - now;
  }
  if (!/^(\s*\d+(\.\d+)?\s*(s|m|min|h|d))+\s*$/.test(text)) return null;
  const parts = [...text.matchAll(/([\d.]+)\s*([a-z]+)/g)];
  return parts.reduce((sum, [, count, unit = '']) => sum + Math.round(Number(count) * SECONDS[unit]! * 1_000), 0) || null;
}

/** A name as it is: what is invisible, or turns the order of the letters round, is written out; and not longer than a line or two. */
export function visible(text: string): string {
  const shown = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]/gu, (each) => `⟨U+${each.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`); // prettier-ignore
  return shown.length > LONGEST_NAME ? `${shown.slice(0, LONGEST_NAME)}…` : shown;
}

/** Several names, each of which may be long. */
export function visibleLong(text: string): string {
  return text.split(' ').map(visible).join(' ');
}
