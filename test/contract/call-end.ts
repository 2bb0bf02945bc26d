/** How a call ended, and after how many milliseconds. */
export interface End {
  error?: unknown;
  took: number;
}

/** Waits for it, and does not reject. */
export async function end(call: Promise<unknown>): Promise<End> {
  const start = performance.now();
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, took: performance.now() - start };
}
