/** @returns those between these lengths, in milliseconds, that were set from now on and not cleared. Until the mocks are restored. */
export function timersLeft(longerThan: number, shorterThan = Infinity): () => NodeJS.Timeout[] {
  const set = jest.spyOn(globalThis, 'setTimeout');
  const clear = jest.spyOn(globalThis, 'clearTimeout');
  return () => {
    const cleared = new Set(clear.mock.calls.map(([timer]) => timer));
    const lengths = set.mock.calls.map(([, length = 0]) => length);
    const timers = set.mock.results.map(({ value }) => value as NodeJS.Timeout);
    return timers.filter((timer, index) => lengths[index]! > longerThan && lengths[index]! < shorterThan && !cleared.has(timer));
  };
}
