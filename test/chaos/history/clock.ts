/** Milliseconds on the monotonic clock, which all processes of a Linux machine share, with a resolution of a microsecond. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
