import type { Scene } from '../../../run/scene.js';
import { RedisStage } from '../stage.js';

/** The stage of a fault that only Redis has. */
export function redisOf({ stage }: Scene): RedisStage {
  if (stage instanceof RedisStage) return stage;
  throw new Error('This fault needs Redis');
}
