import { checkOneOf, checkOptions, integerFrom, ofType, type Check } from '../../core/model/check-options.js';
import { configError, type LockConfigError } from '../../core/model/errors.js';
import { renewable, type LockStore } from '../../core/store/lock-store.js';
import { observedTable } from '../records/observed/observed.table.js';
import { recordStore } from '../records/record.store.js';
import type { Acl, ZookeeperAuth, ZookeeperClient } from './zookeeper.client.js';
import { ZookeeperSession } from './zookeeper.session.js';
import { ZookeeperTable } from './zookeeper.table.js';

export type { Acl, ZookeeperAuth, ZookeeperClient };

/** Options of {@link zookeeperStore}: either `connectionString` or `client`. */
export interface ZookeeperStoreOptions {
  /** The members, and a node for all locks, which is made if it is missing: `zk-1:2181,zk-2:2181,zk-3:2181/shop`. */
  connectionString?: string;
  /** A client of your own, of `node-zookeeper-client`, which you have connected. It is never closed, and not replaced when its server is silent. */
  client?: ZookeeperClient;
  /** Credentials for the `connectionString`, such as `[{ scheme: 'digest', auth: 'user:password' }]`. */
  auth?: readonly ZookeeperAuth[];
  /** Rights to the nodes of the store: `ACL.CREATOR_ALL_ACL` of `node-zookeeper-client` are those of `auth` only. Default: anybody. */
  acl?: Acl;
  /** Milliseconds that a single request may take. Default 1000. */
  requestTimeout?: number;
}

/** Below the node in the connection string. */
const ROOT = '/nestjs-distributed-lock';
const TARGET = /^([^\s:/,@]+(?::\d{1,5})?(?:,[^\s:/,@]+(?::\d{1,5})?)*)((?:\/(?!\.{1,2}(?:\/|$))[^/\s]+)*)\/?$/;

const listOf =
  (isOne: (each: Partial<ZookeeperAuth & Acl[number]>) => boolean, what: string): Check =>
  (value) =>
    Array.isArray(value) && value.every((each) => isOne(Object(each) as object)) ? undefined : what;
const CHECKS = {
  connectionString: ofType('string'),
  client: ofType('object'),
  auth: listOf(
    ({ scheme, auth }) => typeof scheme === 'string' && typeof auth === 'string',
    "[{ scheme: 'digest', auth: 'user:password' }]",
  ),
  acl: listOf((each) => 'toRecord' in each, 'an array such as ACL.CREATOR_ALL_ACL'),
  requestTimeout: integerFrom(1, 2 ** 31 - 1),
};

/**
 * Locks in ZooKeeper 3.5 or later, over `node-zookeeper-client` 1.1.3. No clock of a server takes part: leases are counted by the monotonic clocks of
 * the processes.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function zookeeperStore(options: ZookeeperStoreOptions): LockStore {
  checkOptions(options, 'zookeeperStore', CHECKS);
  const { connectionString, client, auth = [], acl, requestTimeout = 1000 } = options;
  const wrong = (message: string): LockConfigError => configError('OPTION', `zookeeperStore: ${message}`);
  checkOneOf(options, 'zookeeperStore', ['connectionString', 'client']);
  if (client && typeof client.transaction !== 'function') throw wrong('"client" must be one of node-zookeeper-client: createClient(…).');
  if (client && auth.length > 0) throw wrong('"auth" goes with "connectionString". Call client.addAuthInfo().');
  const [, hosts, node = ''] = TARGET.exec(connectionString ?? 'client') ?? [];
  // The text may have a password in an unexpected place.
  if (hosts === undefined) {
    throw wrong('"connectionString" is hosts and a node, such as zk-1:2181,zk-2:2181/shop. It has no scheme, no user and no IPv6 address.');
  }
  const target = { client, hosts, root: node + ROOT, auth, acl };
  return renewable(() => recordStore(observedTable(new ZookeeperTable(new ZookeeperSession(target, requestTimeout)))));
}
