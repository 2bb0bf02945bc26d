// What answers in the place of etcd: a balancer, a proxy, another program. It may say anything, and never ends the process.
import { StoreError } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { CasChange } from '../../../lib/stores/records/observed/cas.table.js';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { EtcdTable } from '../../../lib/stores/etcd/etcd.table.js';
import { EtcdWakeUps } from '../../../lib/stores/etcd/etcd.wakeups.js';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { TIMEOUT } from './setting.js';

const HTML = '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center>nginx</center>\r\n</body>\r\n</html>\r\n';

const closers: (() => Promise<void>)[] = [];
afterEach(() => Promise.all(closers.splice(0).map((close) => close())));

/** A server that answers each request in the same way, whatever was asked. */
async function answering(answer: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on('error', () => socket.destroy()));
    socket.on('data', (request) => answer(socket, String(request)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function clientOf(endpoint: string, auth?: { username: string; password: string }): EtcdClient {
  const client = new EtcdClient({ endpoints: [endpoint], auth }, TIMEOUT);
  closers.push(async () => client.close());
  return client;
}

/** How the opening of an inbox there ends. */
function watchError(endpoint: string): Promise<unknown> {
  const { listening, ended } = new EtcdWakeUps(clientOf(endpoint), 'test/')['connect']();
  listening.catch(() => undefined);
  return ended;
}

const checked = (endpoint: string): Promise<unknown> => {
  const store = etcdStore({ endpoints: [endpoint], requestTimeout: TIMEOUT });
  closers.push(() => store.close());
  return rejection(store.mutex.check({ key: 'order:42', owner: 'me' }));
};

const page = (status: number, text: string): string => `HTTP/1.1 ${status} Text\r\nconnection: close\r\n\r\n${text}`;
const gateway = { header: { cluster_id: '1', member_id: '1', revision: '7', raft_term: '1' } };
const result = (more: object): string => `${JSON.stringify({ result: { ...gateway, ...more } })}\n`;

const ANSWERS: Record<string, string> = {
  'a page of a balancer': page(502, HTML),
  'a page that says 200': page(200, HTML),
  'a page of half a character': `${page(503, '')}\u00e4`.slice(0, -1),
  'a text of Envoy': page(503, '{"message":"no healthy upstream"}'),
  'the same with 200': page(200, '{"message":"no healthy upstream"}\n'),
  'a status in the place of a code': page(403, '{"code":403,"message":"Forbidden"}'),
  'a redirection': `HTTP/1.1 301 Moved\r\nlocation: https://example.com/\r\ncontent-length: 0\r\n\r\n`,
  'another protocol': `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
  'no HTTP': '\u0000\u0001-ERR unknown command\r\n',
  'half a head': 'HTTP/1.1 200 O',
  'half a body': 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"result":',
  'a broken chunk': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}',
  nothing: page(200, ''),
  'an empty line': page(200, '\n'),
  'half a message': page(200, '{"result":{"header":{"cluster'),
  'half a message and a line': page(200, '{"result":{"header":{"cluster\n'),
  ...Object.fromEntries(
    [
      ...['null', '5', '"text"', '[]', '[{}]', '{}', 'true', '{"header":null}', '{"header":5}', '{"header":{"cluster_id":5}}'],
      ...['{"result":null}', '{"result":5}', '{"result":[]}', '{"result":{}}', '{"error":null}', '{"error":5}', '{"error":{}}'],
      '{"error":{"message":{},"grpc_code":{}}}',
    ].map((json) => [json, page(200, `${json}\n`)]),
  ),
  'a message without a key': page(200, result({ created: true, events: [{}] })),
  'a message whose key is a number': page(200, result({ created: true, events: [{ kv: { key: 5 } }] })),
  'messages that are a number': page(200, result({ created: true, events: 5 })),
  'a message that is not encoded': page(200, result({ created: true, events: [{ kv: { key: '\u00e4{', value: '\u00e4{' } }] })),
  'a cancellation without a reason': page(200, result({ canceled: true, cancel_reason: {} })),
};

describe.each(Object.entries(ANSWERS))('%s', (_name, answer) => {
  const end = (socket: Socket): unknown => socket.end(answer);

  it('is a passing error of a request', async () => {
    const error = await checked(await answering(end));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true, isRefusal: false, isUnsent: false });
  });

  it('ends a watch, which is opened again', async () => {
    const error = await watchError(await answering(end));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
  });
});

it('a gateway that is not there is final for requests and the watch', async () => {
  const url = await answering((socket) => socket.end(page(404, '404 page not found\n')));
  const refusal = { transient: false, isRefusal: true, message: expect.stringContaining('etcd 3.4 or later is needed') };
  expect(await checked(url)).toMatchObject(refusal);
  expect(await watchError(url)).toMatchObject(refusal);
});

it.each([502, 200])('what has no end is not read for longer than it can be of use: status %s', async (status) => {
  const sockets: Socket[] = [];
  const url = await answering((socket) => {
    sockets.push(socket);
    const part = 'x'.repeat(65_536);
    // Until the client has enough.
    const more = (): void => {
      while (!socket.destroyed && socket.write(part));
    };
    socket.on('drain', more).write(page(status, ''));
    more();
  });
  expect(await checked(url)).toMatchObject({ name: 'StoreError', transient: true });
  expect(await watchError(url)).toMatchObject({ name: 'StoreError', transient: true });
  // Less than the longest string, at which a reader would end in any case.
  for (const { bytesWritten } of sockets) expect(bytesWritten).toBeLessThan(2 ** 28);
});

it('a page in the place of a token is asked for again', async () => {
  let isWell = false;
  const tokens: string[] = [];
  const url = await answering((socket, request) => {
    const token = /^authorization: (.*)\r$/m.exec(request)?.[1];
    if (token !== undefined) tokens.push(token);
    const body = JSON.stringify({ ...gateway, token: isWell ? 'right' : { toString: 'no\n' } });
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  });
  const client = clientOf(url, { username: 'shop', password: 'shop' });
  const put = (): Promise<unknown> => client.ask('/v3/kv/put', {});
  for (let tries = 0; tries < 2; tries++) expect(await rejection(put())).toMatchObject({ name: 'StoreError', transient: true });
  isWell = true;
  await eventually(put);
  expect(tokens).toEqual(['right']);
});

const look: CasChange = { key: 'order:42', expected: 'look', text: '', messages: [] };
const write: CasChange = { ...look, expected: { version: '5' } };
const exchanged = (table: EtcdTable, ...changes: CasChange[]): Promise<unknown> => Promise.all(table.exchange(changes));
const asks = {
  look: (table) => exchanged(table, look),
  looks: (table) => exchanged(table, look, { ...look }),
  touch: (table) => exchanged(table, { ...look, expected: 'touch' }),
  write: (table) => exchanged(table, write),
  writes: (table) => exchanged(table, write, { ...write }),
  keys: (table) => table.keys('').next(),
  sweep: (table) => table.sweep(9, () => false),
  count: (table) => table.count(),
} satisfies Record<string, (table: EtcdTable) => Promise<unknown>>;

const header = { cluster_id: '1' };
const row = { key: 'eA==', value: 'eA==', mod_revision: '7' };
const range = (kvs?: unknown): object => ({ response_range: { ...gateway, kvs } });
it.each<[keyof typeof asks, object]>([
  ['look', {}],
  ['look', { responses: [] }],
  ['look', { responses: [{}] }],
  ['look', { responses: [{ response_range: null }] }],
  ['look', { responses: [range([{ ...row, mod_revision: undefined }])] }],
  ['look', { responses: [range([{ ...row, value: 5 }])] }],
  ['look', { header, responses: [range()] }],
  ['look', { header: { revision: '7' }, responses: [range()] }],
  ['looks', { responses: [range()] }],
  ['touch', { succeeded: true }],
  ['write', {}],
  ['write', { responses: [{ response_put: {} }] }],
  ['write', { header, succeeded: true }],
  ['writes', { succeeded: true }],
  ['writes', { succeeded: true, responses: [{}, {}] }],
  ['keys', { kvs: 5 }],
  ['keys', { kvs: [null] }],
  ['keys', { kvs: [{ ...row, key: undefined }] }],
  ['sweep', { kvs: [{ ...row, mod_revision: undefined }] }],
  ['count', { header }],
])('a reply of which something between has cut a part is a passing error, and leaves open what was done: %s, %j', async (asked, reply) => {
  const url = await answering((socket) => socket.end(page(200, JSON.stringify({ ...gateway, ...reply }))));
  const error = await rejection(asks[asked](new EtcdTable(clientOf(url), 'test/')));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: true, isRefusal: false, isUnsent: false });
});

describe('a refusal of etcd', () => {
  const refusing = (message: string, code: number): Promise<string> =>
    answering((socket) => socket.end(page(400, JSON.stringify({ error: message, message, code }))));

  it.each([
    ...[3, 5, 7, 12, 16].map((code): [string, number] => ['etcdserver: no', code]),
    ['etcdserver: mvcc: database space exceeded', 8],
    ['etcdserver: authentication is not enabled', 9],
  ])('that stays until somebody changes something is final: %s, code %i', async (message, code) => {
    expect(await checked(await refusing(message, code))).toMatchObject({ transient: false, isRefusal: true });
  });

  it.each<[string, number]>([
    ...[1, 2, 4, 6, 8, 9, 10, 11, 13, 14, 15, 17, 400].map((code): [string, number] => ['etcdserver: no', code]),
    ['raft proposal dropped', 2],
    ['etcdserver: not leader', 9],
    ['etcdserver: too many requests', 8],
    ['etcdserver: revision of auth store is old', 3],
    ['etcdserver: invalid auth token', 16],
  ])('that may pass is waited out, and may be of a change that was made: %s, code %i', async (message, code) => {
    expect(await checked(await refusing(message, code))).toMatchObject({ transient: true, isRefusal: false, isUnsent: false });
  });

  it('of a token makes the user sign in once more, and not without end', async () => {
    const asked: string[] = [];
    const url = await answering((socket, request) => {
      const path = /^POST (\S+)/.exec(request)![1]!;
      asked.push(path);
      const isSignIn = path === '/v3/auth/authenticate';
      const body = JSON.stringify(isSignIn ? { ...gateway, token: 'x' } : { message: 'etcdserver: invalid auth token', code: 16 });
      socket.end(page(isSignIn ? 200 : 401, body));
    });
    const error = await rejection(clientOf(url, { username: 'shop', password: 'shop' }).ask('/v3/kv/put', {}));
    expect(error).toMatchObject({ transient: true, message: expect.stringContaining('invalid auth token') });
    const once = ['/v3/auth/authenticate', '/v3/kv/put'];
    expect(asked).toEqual([...once, ...once]);
  });
});
