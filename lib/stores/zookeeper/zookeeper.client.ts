import { StoreError } from '../../core/model/errors.js';

/** A callback of the client: with an error, or with what the server has answered. */
export type Done<Results extends readonly unknown[]> = (error: unknown, ...results: Results) => void;

/** The state of a node. Its longs are 8 bytes. */
export interface Stat {
  readonly mzxid: Buffer;
  readonly mtime: Buffer;
  readonly version: number;
}

/** Entries of the class `ACL` of the client, such as `ACL.CREATOR_ALL_ACL`. */
export type Acl = readonly object[];

/** A `Client` of `node-zookeeper-client`, as far as it is used. By its methods and not by its class: an app may have another copy of it. */
export interface ZookeeperClient {
  getState(): { readonly code: number };
  connect(): void;
  close(): void;
  addAuthInfo(scheme: string, auth: Buffer): void;
  on(event: 'state', listener: () => void): unknown;
  removeListener(event: 'state', listener: () => void): unknown;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- instances of a class of the client; without them, anybody may do everything
  create(path: string, data: Buffer, acl: any, mode: number, done: Done<[string]>): void;
  setData(path: string, data: Buffer, version: number, done: Done<[Stat]>): void;
  getData(path: string, done: Done<[Buffer | undefined, Stat]>): void;
  getChildren(path: string, done: Done<[string[], Stat]>): void;
  getChildren(path: string, watcher: () => void, done: Done<[string[], Stat]>): void;
  remove(path: string, version: number, done: Done<[]>): void;
  transaction(): ZookeeperTransaction;
}

/** Versions 0 and -1 are the same to it: any. */
export interface ZookeeperTransaction {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  create(path: string, data: Buffer, acl: any, mode: number): unknown;
  setData(path: string, data: Buffer, version: number): unknown;
  check(path: string, version: number): unknown;
  remove(path: string, version: number): unknown;
  commit(done: Done<[readonly { readonly stat?: Stat; readonly err?: number }[]]>): void;
}

/** Credentials that are sent with each connection, such as `{ scheme: 'digest', auth: 'user:password' }`. */
export interface ZookeeperAuth {
  scheme: string;
  auth: string;
}

/** The state of a client that may write. */
export const CONNECTED = 3;
/** Kinds of nodes. */
export const PERSISTENT = 0;
export const SEQUENTIAL = 2;
/** Codes of ZooKeeper. */
export const NO_NODE = -101;
export const BAD_VERSION = -103;
export const NODE_EXISTS = -110;
/** Codes that another try does not change, with advice. */
const REFUSALS: Readonly<Record<number, string>> = {
  [-5]: 'It has not understood the request',
  [-6]: 'ZooKeeper 3.5 or later is needed',
  [-8]: 'It does not accept the request',
  [-102]: 'Give "auth" of a user who may read, write, create and delete there',
  [-114]: 'Check "acl". An entry of the scheme "auth" needs "auth", too',
  [-115]: 'Check "auth": the servers do not know its scheme, or refuse it',
  [-124]: 'The servers ask for SASL, which node-zookeeper-client does not have',
  [-125]: 'Raise the quota of its node: setquota',
};

/** The code of a reply, or of the client; 0: it has none. */
export function codeOf(error: unknown): number {
  const { code } = ((error as StoreError).cause ?? {}) as { code?: unknown };
  return typeof code === 'number' ? code : 0;
}

/** Makes a {@link StoreError}. Its outcome is unknown, unless the server has refused it or it is unsent. */
export function storeErrorOf(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const { code, name, message } = Object(cause) as { code?: unknown; name?: string; message?: string };
  // The client was not found, or does not take what it is asked.
  if (typeof code !== 'number') return new StoreError(`ZooKeeper: ${message}`, { transient: false, isUnsent: true, cause });
  const advice = REFUSALS[code];
  const text = `ZooKeeper: ${name ?? 'error'} (${code})${advice === undefined ? '' : `. ${advice}.`}`;
  return new StoreError(text, { transient: advice === undefined, isRefusal: advice !== undefined, cause });
}
