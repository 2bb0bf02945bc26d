import type { LockStore } from 'nestjs-distributed-lock/core';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import zookeeper from 'node-zookeeper-client';

export function ofThreeMembers(): LockStore {
  // #region zookeeper
  const store = zookeeperStore({ connectionString: 'zk-1:2181,zk-2:2181,zk-3:2181/shop' });
  // #endregion
  return store;
}

export function withUser(): LockStore {
  // #region zookeeper-user
  const store = zookeeperStore({
    connectionString: process.env.ZOOKEEPER ?? 'zk-1:2181,zk-2:2181,zk-3:2181/shop',
    auth: [{ scheme: 'digest', auth: `shop:${process.env.ZOOKEEPER_PASSWORD ?? ''}` }],
    acl: [new zookeeper.ACL(zookeeper.Permission.ALL, new zookeeper.Id('auth', ''))],
  });
  // #endregion
  return store;
}

export function ofYourClient(): LockStore {
  // #region zookeeper-client
  const client = zookeeper.createClient('zk-1:2181,zk-2:2181,zk-3:2181');
  client.connect();
  const store = zookeeperStore({ client });
  // #endregion
  client.close();
  return store;
}
