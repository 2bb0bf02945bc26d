import type { RedisConnection } from '../../support/redis-server.js';
import type { Kind } from '../history/entry.js';

/** The order with which the controller starts a worker. */
export interface WorkerOrder {
  /** its name in the history; a replacement has another one */
  id: string;
  seed: string;
  /** of the histories */
  folder: string;
  kinds: Kind[];
  /** a name of `stores.ts`, and where that store is for this worker */
  store: string;
  target: unknown;
  /** the server that no fault touches */
  resource: RedisConnection;
  /** a name of `breaks.ts` */
  break?: string;
}

export type ToWorker = { type: 'stop' } | { type: 'busy'; ms: number };
export type FromWorker = { type: 'ready' };
