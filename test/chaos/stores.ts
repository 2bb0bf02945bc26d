import type { Group } from './faults/fault.js';
import type { Kind } from './history/entry.js';
import type { StageModule, WorkerModule } from './stores/store.js';

interface StoreUnderTest {
  /** how its servers are started, and what can happen to them */
  stage(): Promise<StageModule>;
  /** how a worker opens it */
  worker(): Promise<WorkerModule>;
  /** what can happen to it; the others are left out */
  readonly groups: readonly Group[];
  /** kinds of lock that it has; default: all */
  readonly kinds?: readonly Kind[];
}

const OF_REDIS: readonly Group[] = [
  ...(['process', 'net', 'server', 'rights', 'memory', 'restart', 'failover', 'sentinel', 'clock'] as const),
  ...(['loss', 'clock-server'] as const),
];
const OF_DATABASES: readonly Group[] = ['process', 'net', 'server', 'rights', 'restart', 'clock', 'loss'];

/** The stores that can be tested, by name. */
export const stores: Record<string, StoreUnderTest | undefined> = {
  redis: { stage: () => import('./stores/redis/start.js'), worker: () => import('./stores/redis/worker.js'), groups: OF_REDIS },
  'replica-acks': {
    stage: async () => {
      const { startStage } = await import('./stores/redis/start.js');
      return { startStage: (options) => startStage(options, 1) };
    },
    worker: () => import('./stores/redis/worker.js'),
    groups: ['process', 'net', 'server', 'failover', 'takeover', 'clock'],
    // A change of a latch does not wait for replicas.
    kinds: ['mutex', 'read-write', 'semaphore', 'multi', 'leader'],
  },
  cluster: {
    stage: () => import('./stores/cluster/stage.js'),
    worker: () => import('./stores/cluster/worker.js'),
    groups: ['process', 'server', 'failover', 'clock'],
  },
  quorum: {
    stage: () => import('./stores/quorum/stage.js'),
    worker: () => import('./stores/quorum/worker.js'),
    groups: ['process', 'net', 'server', 'restart', 'clock', 'clock-member'],
    kinds: ['mutex', 'read-write', 'multi', 'leader'],
  },
  postgres: {
    stage: () => import('./stores/postgres/stage.js'),
    worker: () => import('./stores/postgres/worker.js'),
    groups: OF_DATABASES,
  },
  mysql: {
    stage: () => import('./stores/mysql/stage.js'),
    worker: () => import('./stores/mysql/worker.js'),
    groups: OF_DATABASES,
  },
  etcd: {
    stage: () => import('./stores/etcd/stage.js'),
    worker: () => import('./stores/etcd/worker.js'),
    groups: ['process', 'net', 'server', 'restart', 'failover', 'clock'],
  },
  zookeeper: {
    stage: () => import('./stores/zookeeper/stage.js'),
    worker: () => import('./stores/zookeeper/worker.js'),
    // Restarts are of the group `loss` where the version of the server forgets.
    groups: ['process', 'server', 'restart', 'clock', 'loss'],
  },
  file: {
    stage: () => import('./stores/file/stage.js'),
    worker: () => import('./stores/file/worker.js'),
    groups: ['process', 'files', 'clock', 'loss'],
  },
  memory: {
    stage: () => import('./stores/memory/stage.js'),
    worker: () => import('./stores/memory/worker.js'),
    groups: ['process', 'clock'],
  },
};
