// etcd with users, by each kind of token that it has, with TLS, and when it is full.
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { rejection } from '../../support/rejection.js';
import { examined, startLines } from '../../doctor/examined.js';
import { makeCertificate } from '../../support/certificate.js';
import { startEtcd, type EtcdServer } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { ask, base64, open } from './setting.js';

const shop = { username: 'shop', password: 'pässword:@' };
const folder = mkdtempSync(join(tmpdir(), 'etcd-jwt-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What etcd signs its tokens with. It runs as another user. */
function signing(): string {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  writeFileSync(join(folder, 'public.pem'), publicKey);
  writeFileSync(join(folder, 'private.pem'), privateKey, { mode: 0o644 });
  chmodSync(folder, 0o755);
  return `jwt,pub-key=${folder}/public.pem,priv-key=${folder}/private.pem,sign-method=RS256,ttl=1h`;
}

describe.each(['simple', 'jwt'])('with authentication by %s tokens', (kind) => {
  let server: EtcdServer;
  let url: string;
  let added = 0;
  /** Each change of a user ends a JWT. */
  async function asRoot(path: string, body: object): Promise<void> {
    const { token } = await ask<{ token: string }>(url, '/v3/auth/authenticate', { name: 'root', password: 'root' });
    await ask(url, `/v3/auth/${path}`, body, token);
  }
  /** All tokens end: etcd forgets simple ones, and a JWT knows only the users of its time. */
  async function end(): Promise<void> {
    if (kind === 'jwt') return asRoot('user/add', { name: `user-${++added}`, password: 'x' });
    const { token } = await ask<{ token: string }>(url, '/v3/auth/authenticate', { name: 'root', password: 'root' });
    const isKnown = (): Promise<boolean> =>
      ask(url, '/v3/kv/put', { key: base64('x'), value: '' }, token).then(
        () => true,
        (error: unknown) => !String(error).includes('invalid auth token'),
      );
    // One that is in the end of the log is made once more.
    while (await isKnown()) await server.restart();
  }
  beforeAll(async () => {
    server = await startEtcd({ args: [`--auth-token=${kind === 'jwt' ? signing() : kind}`] });
    ({ url } = server);
    await ask(url, '/v3/auth/user/add', { name: 'root', password: 'root' });
    await ask(url, '/v3/auth/user/grant', { user: 'root', role: 'root' });
    await ask(url, '/v3/auth/enable', {});
    await asRoot('user/add', { name: shop.username, password: shop.password });
    await asRoot('role/add', { name: 'locks' });
    const range = { key: base64('locks/'), range_end: base64('locks0') };
    await asRoot('role/grant', { name: 'locks', perm: { permType: 'READWRITE', ...range } });
    await asRoot('user/grant', { user: shop.username, role: 'locks' });
  });
  afterAll(() => server.stop());

  it('a user with the right to the prefix has all locks, is woken, and reads at the start of the app where they are', async () => {
    const options = { endpoints: [url], auth: shop, prefix: 'locks/' };
    const [line] = await startLines(etcdStore(options), 'shop:');
    expect(line).toMatch(RegExp(`^(etcd [\\d.]+|Etcd) at ${url}, prefix "locks/", namespace "shop:", answers in `));
    const report = await examined(etcdStore(options));
    expect(report.notOk).not.toContain('wake-ups warn');
    expect(report.of('probe').state).toBe('ok');
  });

  it.each([
    ['no user', {}, 'Give "auth"'],
    ['a wrong password', { auth: { ...shop, password: 'wrong' } }, 'invalid user ID or password'],
    ['no right to the prefix', { auth: shop, prefix: 'other/' }, 'etcdctl role grant-permission'],
  ])('%s is refused with what to do, and without the password', async (_what, options, message) => {
    const error = await rejection(open({ endpoints: [url], ...options }).acquire('order:42', { waitTimeout: 1000 }));
    expect(error).toMatchObject({ name: 'StoreError', isRefusal: true, transient: false, message: expect.stringContaining(message) });
    expect(String(error)).not.toContain('wrong');
  });

  it('a token that is not accepted any more is replaced, and a lease outlives that', async () => {
    const locks = open({ endpoints: [url], auth: shop, prefix: 'locks/' });
    const lease = await locks.acquire('order:42', { keyTimeout: 10_000 });
    await end();
    await eventually(() => lease.renew());
    expect(await lease.release()).toBe(true);
  });

  it('such a token is replaced for a watch, and for what the doctor asks, too', async () => {
    const client = new EtcdClient({ endpoints: [url], auth: shop }, 5000);
    const request = { key: base64('locks/'), range_end: base64('locks0') };
    const look = (): Promise<unknown> => client.ask('/v3/kv/range', request);
    await look();
    await end();
    const first = await new Promise((resolve, reject) => client.watch(JSON.stringify({ create_request: request }), resolve, reject));
    expect(first).toMatchObject({ created: true });
    await look();
    await end();
    await client.ask('/v3/maintenance/alarm', { action: 'GET' });
    client.close();
  });

  it('a waiter is woken when the users have changed meanwhile', async () => {
    const [holder, waiter] = [1, 2].map(() => open({ endpoints: [url], auth: shop, prefix: 'locks/' }));
    const lease = await holder!.acquire('hand-over', { keyTimeout: 600_000 });
    const waiting = waiter!.acquire('hand-over', { waitTimeout: 600_000, retryInterval: 300_000 });
    await eventually(async () => (await holder!.inspect('hand-over')).waiters.length === 1);
    await end();
    await eventually(async () => (await waiter!.inspect('hand-over')).waiters.length === 1);
    expect(await lease.release()).toBe(true);
    await (await waiting).release();
  });
});

it('"auth" where there is none is refused with what to do', async () => {
  const server = await startEtcd();
  const auth = { username: 'root', password: 'root' };
  expect(await rejection(open({ endpoints: [server.url], auth }).acquire('order:42'))).toMatchObject({
    message: expect.stringContaining('Leave "auth" out'),
  });
  await server.stop();
});

it('an endpoint that speaks HTTPS only is refused with what to write', async () => {
  const certificate = makeCertificate();
  chmodSync(dirname(certificate.args[1]!), 0o755);
  chmodSync(certificate.args[3]!, 0o644);
  const plain = await startEtcd();
  const safe = await startEtcd({ args: [`--cert-file=${certificate.args[1]}`, `--key-file=${certificate.args[3]}`] });
  const tls = { ca: certificate.ca };
  const acquired = (endpoints: string[], options?: typeof tls) =>
    rejection(open({ endpoints, tls: options }).acquire('order:42', { waitTimeout: 1000 }));
  const advice = expect.stringContaining('Its endpoints begin with https:// if it has TLS') as string;
  await (await open({ endpoints: [safe.url], tls }).acquire('order:42')).release();
  const error = await acquired([safe.url.replace('https', 'http')]);
  expect(error).toMatchObject({ name: 'StoreError', message: advice });
  expect(await acquired([safe.url])).toMatchObject({ name: 'StoreError', transient: false, isUnsent: true });
  expect(await acquired([plain.url.replace('http', 'https')], tls)).toMatchObject({
    name: 'StoreError',
    message: advice,
  });
  await Promise.all([safe, plain].map((each) => each.stop()));
  certificate.remove();
});

it('a full server refuses, says how to make room, and works again after that', async () => {
  const full = await startEtcd({ args: ['--quota-backend-bytes=1000000'] });
  const locks = open({ endpoints: [full.url] });
  await (await locks.acquire('order:42')).release();
  const fill = async (): Promise<never> => {
    for (let index = 0; ; index++) await ask(full.url, '/v3/kv/put', { key: base64(`fill/${index}`), value: base64('x'.repeat(100_000)) });
  };
  await rejection(fill());
  const error = await rejection(locks.acquire('order:42', { waitTimeout: 1000 }));
  expect(error).toMatchObject({ isRefusal: true, message: expect.stringContaining('--auto-compaction-retention=1h') });
  const report = await examined(etcdStore({ endpoints: [full.url] }));
  expect(report.of('space')).toMatchObject({ state: 'bad', seen: expect.stringContaining('alarm NOSPACE') });
  await full.stop();
});
