/** Settings of the demo's processes, from their environment. Times are milliseconds. */
export const settings = {
  /** How long a sale takes. */
  work: numberOf('WORK_MS', 5),
  /** How long one sale in twenty takes: a slow query, a garbage collection. Default: as long as the others. */
  slowWork: numberOf('SLOW_WORK_MS', numberOf('WORK_MS', 5)),
  /** How long the naive lock lasts. */
  naiveExpiry: numberOf('NAIVE_EXPIRY_MS', 1000),
  /** The leader's lease: one that dies is succeeded within it and a second. */
  keyTimeout: numberOf('KEY_TIMEOUT_MS', 3000),
  /** How long the leader works for each line in its ledger. */
  jobMs: numberOf('JOB_MS', 50),
};

function numberOf(name: string, fallback: number): number {
  return Number(process.env[name] || fallback);
}
