/** Settings of the demo's processes, from their environment. Times are milliseconds. */
export const settings = {
  /** How long a sale takes. */
  work: numberOf('WORK_MS', 5),
  /** How long one sale in twenty takes: a slow query, a garbage collection. Default: as long as the others. */
  slowWork: numberOf('SLOW_WORK_MS', numberOf('WORK_MS', 5)),
  /** How long the naive lock lasts. */
  naiveExpiry: numberOf('NAIVE_EXPIRY_MS', 1000),
};

function numberOf(name: string, fallback: number): number {
  return Number(process.env[name] || fallback);
}
