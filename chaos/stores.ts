import type { StageModule, WorkerModule } from './stores/store.js';

interface StoreUnderTest {
  /** how its servers are started, and what can happen to them */
  stage(): Promise<StageModule>;
  /** how a worker opens it */
  worker(): Promise<WorkerModule>;
}

/** The stores that can be tested, by name. */
export const stores: Record<string, StoreUnderTest | undefined> = {
  redis: { stage: () => import('./stores/redis/start.js'), worker: () => import('./stores/redis/worker.js') },
  memory: { stage: () => import('./stores/memory/stage.js'), worker: () => import('./stores/memory/worker.js') },
};
