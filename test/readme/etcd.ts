import type { LockStore } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { readFileSync } from 'node:fs';

export function ofThreeMembers(): LockStore {
  // #region etcd
  const store = etcdStore({ endpoints: ['http://etcd-1:2379', 'http://etcd-2:2379', 'http://etcd-3:2379'] });
  // #endregion
  return store;
}

export function withUser(): LockStore {
  // #region etcd-user
  const store = etcdStore({
    endpoints: (process.env.ETCD_ENDPOINTS ?? 'https://etcd-1:2379,https://etcd-2:2379,https://etcd-3:2379').split(','),
    auth: { username: 'shop', password: process.env.ETCD_PASSWORD ?? '' },
    tls: { ca: readFileSync(process.env.ETCD_CA ?? '/etc/ssl/etcd-ca.pem') },
  });
  // #endregion
  return store;
}
