import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LockStore } from '../core/store/lock-store.js';
import type { Flags, Io, Options } from './command.js';
import { EXIT, failureOf, usage } from './failure.js';
import { shellQuoted } from './output.js';

const NAMES = ['config', 'url', 'store', 'table', 'namespace', 'key-prefix', 'timeout'];
export const STORE_OPTIONS: Options = Object.fromEntries(NAMES.map((name) => [name, { type: 'string' }]));

export interface OpenedStore {
  readonly store: LockStore;
  readonly namespace: string;
}

/** The flags of the store that this command got, for a line to copy. A URL that may have a password is left out. */
export function storeFlags(flags: Flags): string {
  const flag = (name: string): string => {
    const text = flags.text(name);
    return text === undefined ? '' : ` --${name} ${name === 'url' && /[@?]/.test(text) ? '…' : shellQuoted(text)}`;
  };
  return NAMES.map(flag).join('');
}

/** The URLs of stores, for messages. */
export const URLS = 'redis://, rediss://, postgres://, mysql://, etcd://, etcds:// or zookeeper://';
/** The schemes whose stores have these options. */
const SCHEMES_WITH = { table: /^(postgres|postgresql|mysql)$/, 'key-prefix': /^(redis|rediss|etcd|etcds)$/ };

const FILES = ['js', 'mjs', 'cjs'].map((ending) => `nestjs-distributed-lock.config.${ending}`);
const DEFAULT_URL = 'redis://localhost:6379';
const REQUEST_TIMEOUT = 5000;

/** The store of `--config` or a file of that name nearby, of `--url`, of `REDIS_URL`, or Redis on this machine: the first that is given. */
export async function openStore(flags: Flags, io: Pick<Io, 'env' | 'cwd'>, note: (line: string) => void): Promise<OpenedStore> {
  const url = flags.text('url');
  const namespace = flags.text('namespace');
  const file = flags.text('config') ?? (url === undefined ? nearest(io.cwd()) : undefined);
  if (file !== undefined) {
    for (const name of ['key-prefix', 'table', 'timeout']) {
      if (flags.text(name) !== undefined) throw usage(`--${name} goes with a URL: write it into ${file}, which is used.`);
    }
    const known = await configured(resolve(io.cwd(), file), flags);
    return { store: known.store, namespace: namespace ?? known.namespace };
  }
  if (flags.text('store') !== undefined) throw usage('--store goes with a config file, which is missing.');
  const found = url ?? io.env.REDIS_URL;
  if (found === undefined) note(`No --url, config file or REDIS_URL: using ${DEFAULT_URL}.`);
  return { store: await storeOf(found ?? DEFAULT_URL, flags), namespace: namespace ?? '' };
}

function nearest(folder: string): string | undefined {
  const found = FILES.map((name) => join(folder, name)).find((path) => existsSync(path));
  const parent = dirname(folder);
  return found ?? (parent === folder ? undefined : nearest(parent));
}

/** The default export: a store, what `redisStore` takes, or `{ stores: { name: either }, namespace }`. */
async function configured(path: string, flags: Flags): Promise<OpenedStore> {
  if (!existsSync(path)) throw usage(`There is no file ${path}.`);
  const module = await load(path);
  if (module.default === undefined) throw usage(`${path} has no default export.`);
  const exported = Object(module.default) as Record<string, unknown>;
  // A CommonJS file that an ES module imports has its exports in `default`, those of a compiled one once more.
  const config = Object(exported['default'] ?? exported) as { stores?: Record<string, unknown>; namespace?: unknown };
  const name = flags.text('store') ?? 'default';
  const { stores } = config;
  if (stores === undefined && name !== 'default') throw usage(`${path} has no stores by name, but --store ${name} is given.`);
  const chosen = stores === undefined ? config : stores[name];
  if (chosen === undefined) throw usage(`${path} has no store "${name}", but ${Object.keys(stores ?? {}).join(', ') || 'none'}.`);
  return { store: await asStore(chosen), namespace: typeof config.namespace === 'string' ? config.namespace : '' };
}

async function load(path: string): Promise<{ readonly default?: unknown }> {
  try {
    return (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
  } catch (error) {
    if (failureOf(error).exitCode === EXIT.store) throw error;
    throw usage(`${path} cannot be loaded: ${String(error)}`);
  }
}

async function asStore(value: unknown): Promise<LockStore> {
  if ('mutex' in Object(value)) return value as LockStore;
  const { redisStore } = await import('../stores/redis/redis.store.js');
  return redisStore(value as Parameters<typeof redisStore>[0]);
}

async function storeOf(text: string, flags: Flags): Promise<LockStore> {
  const requestTimeout = flags.duration('timeout') ?? REQUEST_TIMEOUT;
  const table = flags.text('table');
  const prefix = flags.text('key-prefix');
  const [, scheme = ''] = /^([a-z+]+):\/\//.exec(text.toLowerCase()) ?? [];
  // An option without effect: the command would look at, or free, keys that are not meant.
  for (const [name, schemes] of Object.entries(SCHEMES_WITH)) {
    if (flags.text(name) !== undefined && !schemes.test(scheme)) throw usage(`--${name} is no option of the store of this URL.`);
  }
  if (/^rediss?$/.test(scheme) && URL.canParse(text)) {
    const { redisStore } = await import('../stores/redis/redis.store.js');
    const url = new URL(text);
    // ioredis takes its options from the query, too.
    if (prefix !== undefined) url.searchParams.set('keyPrefix', prefix);
    return redisStore({ url: url.href, requestTimeout });
  }
  if (/^postgres(ql)?$/.test(scheme))
    return (await import('../stores/postgres/postgres.store.js')).postgresStore({ url: text, requestTimeout, table });
  if (scheme === 'mysql') return (await import('../stores/mysql/mysql.store.js')).mysqlStore({ url: text, requestTimeout, table });
  const [, safe = '', username, password = '', hosts] = /^etcd(s?):\/\/(?:([^:@/]+):([^@/]*)@)?([^@/]+)\/?$/i.exec(text) ?? [];
  if (hosts !== undefined) {
    const { etcdStore } = await import('../stores/etcd/etcd.store.js');
    const endpoints = hosts.split(',').map((host) => `http${safe}://${host}`);
    const auth = username === undefined ? undefined : { username: decodeURIComponent(username), password: decodeURIComponent(password) };
    return etcdStore({ endpoints, auth, prefix, requestTimeout });
  }
  const [, servers] = /^zookeeper:\/\/([^@]+)$/i.exec(text) ?? [];
  if (servers !== undefined)
    return (await import('../stores/zookeeper/zookeeper.store.js')).zookeeperStore({ connectionString: servers, requestTimeout });
  // The URL is not shown: it may have a password in an unexpected place.
  throw usage(`The URL must be one of ${URLS}. Special characters of a password are percent-encoded.`);
}
