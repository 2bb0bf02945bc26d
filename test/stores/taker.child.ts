import { Locks, type LockError } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { tellParent } from '../support/child.js';

export type TakerMessage = { type: 'taken' } | { type: 'refused'; name: string };

// Takes a key, or says why it does not get it. It ends with its parent.
const { engine, options } = JSON.parse(process.argv[2]!) as { engine: keyof typeof STORES; options: object };
const STORES = { etcd: etcdStore, zookeeper: zookeeperStore };
const locks = new Locks(STORES[engine](options as never), { logger: false, defaults: { keyTimeout: 60_000, waitTimeout: 30_000 } });
await locks.acquire('order:42').then(
  () => tellParent({ type: 'taken' }),
  ({ name }: LockError) => tellParent({ type: 'refused', name }),
);
setInterval(() => undefined, 60_000);
