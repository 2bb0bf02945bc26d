import { cpus, loadavg, release, totalmem, type } from 'node:os';

/** What was measured on. */
export const describeMachine = (redis) => ({
  date: new Date().toISOString(),
  cpu: cpus()[0].model.trim(),
  cores: cpus().length,
  memory: Math.round(totalmem() / 2 ** 30),
  system: `${type()} ${release()}`,
  node: process.versions.node,
  redis: redis.version,
  load: loadavg()[0].toFixed(1),
});
