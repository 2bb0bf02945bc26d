import { cpus, release, totalmem, type } from 'node:os';
import { measureBusy } from './busy.mjs';
import { canPin } from './cores.mjs';

/** Describes the machine that was measured on. */
export async function describeMachine(redis) {
  const { share, isBusy } = await measureBusy();
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0].model.trim(),
    cores: cpus().length,
    memory: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    redis: redis.version,
    canPin,
    busy: share,
    isBusy,
  };
}
