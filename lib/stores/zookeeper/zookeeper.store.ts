import { checkOptions, integerFrom, ofType, type Check } from '../../core/model/check-options.js';
import { LockConfigError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { observedTable } from '../records/observed/observed.table.js';
import { recordStore } from '../records/record.store.js';
import type { ZookeeperAuth, ZookeeperClient } from './zookeeper.client.js';
import { type Right, ZookeeperSession } from './zookeeper.session.js';
import { ZookeeperTable } from './zookeeper.table.js';

export type { ZookeeperAuth, ZookeeperClient };

/** Where ZooKeeper is; exactly one of these. */
export type ZookeeperConnectionOptions =
  | {
      /** The members, such as `zk-1:2181,zk-2:2181,zk-3:2181`, and a node for all locks, such as `zk-1:2181/shop`. It is made if it is missing. */
      connectionString: string;
      /** Credentials, such as `[{ scheme: 'digest', auth: 'user:password' }]`. */
      auth?: readonly ZookeeperAuth[];
    }
  | {
      /** A client of your own, of `node-zookeeper-client`, which you have connected. It is never closed, and not replaced when its server is silent. */
      client: ZookeeperClient;
    };

/** Options of {@link zookeeperStore}. */
export type ZookeeperStoreOptions = ZookeeperConnectionOptions & {
  /** Who may use the nodes of the store, as in `setAcl`: `'auth::cdrwa'` are those of `auth` only. Default: anybody. */
  acl?: string;
  /** Milliseconds that a single request may take, connecting included. Default 1000. */
  requestTimeout?: number;
};

/** Below what the connection string or the client gives. */
const ROOT = '/nestjs-distributed-lock';
const PERMISSIONS = 'rwcda';
const HOSTS = /^[^\s:/,@]+(:\d{1,5})?(,[^\s:/,@]+(:\d{1,5})?)*$/;

const credentials: Check = (value) =>
  Array.isArray(value) && value.every((each) => typeof each?.scheme === 'string' && typeof each?.auth === 'string')
    ? undefined
    : "an array such as [{ scheme: 'digest', auth: 'user:password' }]";
const CHECKS = {
  connectionString: ofType('string'),
  client: ofType('object'),
  auth: credentials,
  acl: ofType('string'),
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
  const { connectionString, client, auth = [], acl, requestTimeout = 1000 } = options as Partial<Record<string, never>> & {
    connectionString?: string;
    client?: ZookeeperClient;
    auth?: readonly ZookeeperAuth[];
    acl?: string;
    requestTimeout?: number;
  };
  if ((connectionString === undefined) === (client === undefined)) {
    throw new LockConfigError('zookeeperStore: give either "connectionString" or "client".');
  }
  if (client && typeof client.transaction !== 'function') {
    throw new LockConfigError('zookeeperStore: "client" must be a client of node-zookeeper-client: createClient(…).');
  }
  if (client && options && 'auth' in options) throw new LockConfigError('zookeeperStore: "auth" goes with "connectionString". Call client.addAuthInfo().');
  const { hosts, chroot } = connectionString === undefined ? { hosts: '', chroot: '' } : partsOf(connectionString);
  const place = { client, hosts, root: chroot + ROOT, auth, acl: acl === undefined ? undefined : rightsIn(acl) };
  return recordStore(observedTable(new ZookeeperTable(new ZookeeperSession(place, requestTimeout))));
}

/** The client would take the node for one that is there. */
function partsOf(connectionString: string): { hosts: string; chroot: string } {
  const [, hosts = '', chroot = ''] = /^([^/]*)(.*?)\/?$/.exec(connectionString) ?? [];
  if (!HOSTS.test(hosts)) {
    // The text may have a password in an unexpected place.
    throw new LockConfigError(
      'zookeeperStore: "connectionString" must be hosts and a node, such as zk-1:2181,zk-2:2181/shop. It has no scheme, no user, and no IPv6 address.',
    );
  }
  if (chroot !== '' && !/^(\/(?!\.{1,2}(\/|$))[^/\s]+)+$/.test(chroot)) {
    throw new LockConfigError(`zookeeperStore: the node in "connectionString" must be a path such as /shop, not ${JSON.stringify(chroot)}.`);
  }
  return { hosts, chroot };
}

function rightsIn(acl: string): Right[] {
  return acl.split(',').map((each) => {
    const [, scheme, id, letters] = /^(\w+):(.*):([cdrwa]+)$/.exec(each) ?? [];
    if (scheme === undefined) throw new LockConfigError(`zookeeperStore: "acl" must be as in setAcl, such as "auth::cdrwa", not ${JSON.stringify(each)}.`);
    const permissions = [...PERMISSIONS].reduce((sum, letter, bit) => sum + (letters!.includes(letter) ? 2 ** bit : 0), 0);
    return { scheme, id: id!, permissions };
  });
}
