/** The promise that the work returns, or a rejection if it throws. Unlike an async function it adds no promise, each of which delays the caller. */
export function promised<T>(work: () => Promise<T>): Promise<T> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}
