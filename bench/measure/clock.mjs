/** Milliseconds on the machine's monotonic clock: the same in all processes, which `performance.now()` is not. */
export const clock = () => Number(process.hrtime.bigint()) / 1e6;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Work of at least `ms`, and hardly more. A timer alone may fire up to a millisecond early on a busy loop, and so would make a busy library look
 * better than the ideal.
 */
export async function section(ms) {
  if (ms === 0) return;
  const end = performance.now() + ms;
  await sleep(ms);
  while (performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
}

/** Mean milliseconds of `count` sections, one after the other, without any lock: what the ideal is made of. */
export async function bareSection(ms, count = 100) {
  const start = performance.now();
  for (let i = 0; i < count; i++) await section(ms);
  return (performance.now() - start) / count;
}
