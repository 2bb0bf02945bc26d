/** Milliseconds as people read them: `812 ms`, `8.2 s`, `41 s`, `12 min`, `3 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 600) return `${Math.round(seconds)} s`;
  return seconds < 36_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** `10,000 ms` */
export function inMilliseconds(milliseconds: number): string {
  return `${milliseconds.toLocaleString('en-US')} ms`;
}
