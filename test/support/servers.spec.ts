// What the tests stand on: processes of their own, which leave nothing behind.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { forkChild } from './child.js';
import { eventually, staysTrue } from './eventually.js';
import { isAlive } from './is-alive.js';
import { startRedis, type RedisServer } from './redis-server.js';
import type { Started } from './server.child.js';
import { howToLaunch } from './services.js';
import { startProxy, type TcpProxy } from './tcp-proxy.js';

it('a zombie is not alive', async () => {
  // The shell becomes a program that asks for no child, and that gives back what it reads.
  const parent = spawn('sh', ['-c', 'sleep 100 & echo $!; exec cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string];
  const pid = Number(line);
  parent.stdin.write('ready');
  await once(parent.stdout, 'data');
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isAlive(pid));
  expect(process.kill(pid, 0)).toBe(true);
  expect(isAlive(parent.pid!)).toBe(true);
  parent.stdin.end();
  await once(parent, 'close');
  expect(isAlive(parent.pid!)).toBe(false);
});

it('a child process talks, does nothing while it is paused, and says how it ended', async () => {
  type Message = { type: 'ready'; args: string[]; colour: string } | { type: 'echo'; text: string };
  const child = await forkChild<Message>('test/support/child.child.ts', { args: ['one', 'two'], env: { COLOUR: 'red' } });
  expect(await child.waitFor('ready')).toEqual({ type: 'ready', args: ['one', 'two'], colour: 'red' });
  child.pause();
  child.send({ type: 'hello', text: 'world' });
  let isHeard = false;
  const echo = child.waitFor('echo').finally(() => (isHeard = true));
  await staysTrue(() => !isHeard);
  child.resume();
  expect(await echo).toEqual({ type: 'echo', text: 'world' });
  child.send({ type: 'exit', code: 3 });
  await expect(child.waitFor('echo')).rejects.toThrow(/ended.*"code":3.*leaving/s);
  expect(await child.exit).toEqual({ code: 3, signal: null });
});

it.each(['redis', 'postgres', 'mariadb'])('a %s ends with the process that started it, also when it is paused', async (which) => {
  const owner = await forkChild<Started>('test/support/server.child.ts', { args: [which] });
  const { pid, folder } = await owner.waitFor('started');
  expect(isAlive(pid)).toBe(true);
  const processes = processesOf(pid);
  await owner.kill('SIGKILL');
  await eventually(() => !processes.some(isAlive) && !existsSync(folder));
});

it('a redis-server has a unix socket of its own or a port that nobody else has, and leaves nothing when it is stopped', async () => {
  const [server, other, onPort] = await Promise.all([startRedis(), startRedis(), startRedis({ port: 'free' })]);
  await expect(startRedis({ port: onPort.port })).rejects.toThrow('Address already in use');
  const client = server.client();
  await client.set('key', 'of one');
  expect(await other.client().get('key')).toBeNull();
  await server.pause();
  await Promise.all([server, other, onPort].map((each) => each.stop()));
  expect([isAlive(server.pid), existsSync(server.folder)]).toEqual([false, false]);
  await eventually(() => client.status === 'end');
});

describe('the proxy before a redis-server', () => {
  let server: RedisServer;
  let direct: Redis;
  let proxy: TcpProxy;
  let client: Redis;

  beforeEach(async () => {
    server = await startRedis();
    direct = server.client();
    proxy = await startProxy(server.connection);
    // A command that fails is not sent again, so that each one shows what became of it.
    const once = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, retryStrategy: () => 10, path: undefined };
    client = server.client({ ...proxy.connection, ...once });
    await client.ping();
  });
  afterEach(async () => {
    await server.stop();
    await proxy.close();
    await eventually(() => proxy.connections === 0);
  });

  const outcome = (call: Promise<unknown>) => call.catch((error: Error) => error);
  const recovers = () => eventually(async () => (await client.ping()) === 'PONG');

  it('loses the one reply that is asked for, and resets the connection', async () => {
    const loss = proxy.dropReplyTo('of-interest');
    const calls = ['before', 'of-interest', 'after'].map((key) => outcome(client.set(key, 'value')));
    expect(await Promise.all(calls)).toEqual(['OK', expect.any(Error), expect.any(Error)]);
    expect([loss.lost, await direct.exists('before', 'of-interest')]).toEqual([1, 2]);
    await recovers();
    expect(await client.set('of-interest', 'again')).toBe('OK');
  });

  it('is a black hole: connections stay open, and neither side is notified of the end of the other', async () => {
    const id = `id=${String(await client.client('ID'))} `;
    proxy.blackhole();
    const call = outcome(client.set('key', 'value'));
    await eventually(() => proxy.lost.requests === 1);
    expect(client.status).toBe('ready');
    client.disconnect();
    expect(await call).toBeInstanceOf(Error);
    await staysTrue(async () => String(await direct.client('LIST')).includes(id));
    await proxy.heal();
    await eventually(async () => !String(await direct.client('LIST')).includes(id));
  });
});

/** The process and its children. */
function processesOf(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid='], { encoding: 'utf8' }).trim().split('\n');
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter((pair) => pair.includes(pid)).map(([own]) => own!);
}

it('a suite starts no server that its tier does not list', async () => {
  const env = jest.replaceProperty(process, 'env', { TEST_SUITES: 'test/support/servers.spec.ts' });
  await expect(howToLaunch('promtool')).rejects.toThrow('No suite of this run is known to start promtool');
  env.restore();
});
