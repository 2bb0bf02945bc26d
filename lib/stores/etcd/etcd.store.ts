import type { SecureContextOptions } from 'node:tls';
import { checkOptions, integerFrom, ofType, urlWith } from '../../core/model/check-options.js';
import { configError } from '../../core/model/errors.js';
import { renewable, type LockStore } from '../../core/store/lock-store.js';
import { observedTable } from '../records/observed/observed.table.js';
import { recordStore } from '../records/record.store.js';
import { EtcdClient, type EtcdAuth } from './etcd.client.js';
import { EtcdTable } from './etcd.table.js';

export type { EtcdAuth };

/** Options of {@link etcdStore}. */
export interface EtcdStoreOptions {
  /** The members, such as `['http://etcd-1:2379', 'http://etcd-2:2379']`. Those of one cluster only, each without a path. */
  endpoints: readonly string[];
  /** A user with a password, where the cluster has authentication. The gateway does not know users by their certificates. */
  auth?: EtcdAuth;
  /** For `https://` endpoints: `ca`, `cert` and `key` as of `tls.createSecureContext()`. */
  tls?: SecureContextOptions;
  /** Put before all keys. It separates the locks from what else is there, and the user needs rights to it. Default `'nestjs-distributed-lock/'`. */
  prefix?: string;
  /** Milliseconds that a single request may take. Default 1000. */
  requestTimeout?: number;
}

const PREFIX = 'nestjs-distributed-lock/';
const ofEndpoint = urlWith(/^https?:\/\//i, 'http://etcd-1:2379');
const CHECKS = {
  endpoints: (value: unknown) => (Array.isArray(value) && value.length > 0 ? undefined : 'an array of URLs'),
  auth: ofType('object'),
  tls: ofType('object'),
  prefix: (value: unknown) => (typeof value === 'string' && value !== '' ? undefined : 'a text'),
  requestTimeout: integerFrom(1, 2 ** 31 - 1),
};
const AUTH_CHECKS = { username: ofType('string'), password: ofType('string') };

/**
 * Locks in etcd 3.4 or later, by its JSON gateway. It connects with the first request. No clock of a server takes part: leases are counted by the
 * monotonic clocks of the processes.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function etcdStore(options: EtcdStoreOptions): LockStore {
  checkOptions(options, 'etcdStore', CHECKS, 'endpoints');
  const { endpoints, auth, tls, prefix = PREFIX, requestTimeout = 1000 } = options;
  for (const name of auth === undefined ? [] : Object.keys(AUTH_CHECKS)) checkOptions(auth, 'etcdStore, "auth"', AUTH_CHECKS, name);
  for (const endpoint of endpoints) {
    const { protocol = '', href = '', host = '' } = ofEndpoint(endpoint) ? {} : new URL(endpoint);
    // The gateway is at the root of its host. A path would be lost.
    if (href !== `${protocol}//${host}/`)
      throw configError('OPTION', 'etcdStore: an endpoint must be a URL such as http://etcd-1:2379. A user goes into "auth".');
    if (tls && protocol === 'http:') throw configError('OPTION', 'etcdStore: "tls" is for https:// endpoints.');
  }
  return renewable(() => recordStore(observedTable(new EtcdTable(new EtcdClient({ endpoints, auth, tls }, requestTimeout), prefix))));
}
