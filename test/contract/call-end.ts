/** How a call ended, and after how many milliseconds. */
export interface End {
  error?: unknown;
  took: number;
}

/** Begins the call and waits for it. Does not reject. */
export async function end(call: () => Promise<unknown>): Promise<End> {
  const start = performance.now();
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, took: performance.now() - start };
}
