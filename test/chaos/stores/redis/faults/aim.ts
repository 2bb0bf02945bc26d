import type { Redis } from 'ioredis';
import type { RedisServer } from '../../../../support/redis-server.js';
import type { Strike } from '../../../faults/fault.js';
import type { Scene } from '../../../run/scene.js';

/** Which server a fault strikes, and a connection of the controller's own to it. */
export type Aim = (scene: Scene, strike: Strike) => { server: RedisServer; admin: Redis };
