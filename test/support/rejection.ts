/** The error that the promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`It should have rejected, and resolved to ${String(value)}.`);
}

/** The result of the work, and how long it takes. */
export async function timed<T>(work: () => Promise<T>): Promise<{ result: T; elapsed: number }> {
  const start = performance.now();
  const result = await work();
  return { result, elapsed: performance.now() - start };
}

/** A function that throws it. */
export const throwing = (error: Error) => (): never => {
  throw error;
};
