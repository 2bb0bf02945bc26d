import type { LockStore } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

// #region redis-sentinel
/** @param sentinels some of them are enough: each knows the others */
export function storeBehindSentinels(sentinels: { host: string; port: number }[], password?: string): LockStore {
  return redisStore({ sentinels, name: 'locks', options: { password } });
}
// #endregion

// #region redis-cluster
/** @param nodes some of them are enough: each knows the others */
export function storeOnCluster(nodes: { host: string; port: number }[], password?: string): LockStore {
  return redisStore({ cluster: nodes, clusterOptions: { redisOptions: { password } } });
}
// #endregion

// #region redis-replica-acks
/** A grant must have reached one replica at least. */
export function storeThatWaitsForReplicas(url: string): LockStore {
  return redisStore({ url, replicaAcks: 1 });
}
// #endregion

// #region redis-socket
export function storeOnSocket(path = '/run/redis/redis.sock'): LockStore {
  return redisStore({ options: { path } });
}
// #endregion

// #region redis-tls
/** @param ca the certificate of the authority, if it is not one that Node knows */
export function storeOverTls(host: string, port: number, ca?: Buffer): LockStore {
  return redisStore({ options: { host, port, tls: { ca } } });
}
// #endregion
