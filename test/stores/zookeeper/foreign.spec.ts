// A client that is lent may call back with anything.
import { StoreError } from 'nestjs-distributed-lock/core';
import type { CasChange } from '../../../lib/stores/records/observed/cas.table.js';
import { CONNECTED, type Done, type Stat, type ZookeeperClient } from '../../../lib/stores/zookeeper/zookeeper.client.js';
import { ZookeeperLink } from '../../../lib/stores/zookeeper/zookeeper.link.js';
import { ZookeeperSession } from '../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../lib/stores/zookeeper/zookeeper.table.js';
import { rejection } from '../../support/rejection.js';

const transaction = {
  create: () => undefined,
  setData: () => undefined,
  check: () => undefined,
  commit: (done: Done<[readonly object[]]>) => done(null, []),
};
const client = {
  getState: () => ({ code: CONNECTED }),
  on: () => undefined,
  removeListener: () => undefined,
  getData: (_path: string, done: Done<[Buffer, Stat | undefined]>) => done(null, Buffer.from('-1 x'), undefined),
  setData: (_path: string, _data: Buffer, _version: number, done: Done<[Stat | undefined]>) => done(null, undefined),
  transaction: () => transaction,
} as unknown as ZookeeperClient;

it.each<[string, CasChange['expected']]>([
  ['a new row', { version: undefined }],
  ['a row', { version: 'life.1' }],
  ['a look', 'look'],
  ['a touch', 'touch'],
])('an answer to %s without the state of its node is a passing error, and leaves open what was done', async (_what, expected) => {
  const table = new ZookeeperTable(new ZookeeperSession({ client, hosts: '', root: '/locks', auth: [], acl: undefined }, 5000));
  const error = await rejection(table.exchange([{ key: 'order:42', expected, text: '', messages: [] }])[0]!);
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: true, isRefusal: false, isUnsent: false });
});

it('a request to a client that is never connected again leaves nothing', async () => {
  const expired = { ...client, getState: () => ({ code: -112 }) };
  const link = new ZookeeperLink(expired, () => undefined);
  expect(await link.isConnectedWithin(1)).toBe(false);
  expect([...(link as unknown as { waiting: Iterable<unknown> }).waiting]).toEqual([]);
});
