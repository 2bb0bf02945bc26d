// Every exit code that says no, config files, and passwords, which are never shown.
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { StoreError } from 'nestjs-distributed-lock/core';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Flags } from '../../lib/cli/command.js';
import { failureOf } from '../../lib/cli/failure.js';
import { storeFlags } from '../../lib/cli/open-store.js';
import { ndlHere, useCli, type CliOptions, type CliResult } from '../support/cli.js';
import { freePort } from '../support/free-port.js';
import { errorIn, useRedis } from './setting.js';

const redis = useRedis();
const cli = useCli();
const folders: string[] = [];
const newFolder = (): string => folders[folders.push(mkdtempSync(join(tmpdir(), 'ndl-'))) - 1]!;
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

function refused({ code, stderr, stdout }: CliResult, expected: number, text: RegExp): void {
  expect([code, stderr, stdout]).toEqual([expected, expect.stringMatching(text), '']);
  expect(stderr).not.toMatch(/geheim|falsch/);
}
/** A config file. */
const config = (name: string, text: string, folder = newFolder()): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
/** A file of the library, for an import of a config file. */
const compiled = (name: string): string => JSON.stringify(join(cli.folder(), name));
const fails = async (args: string[], code: number, text: RegExp, options?: CliOptions): Promise<void> =>
  refused(await ndlHere(args, options), code, text);

describe('2: wrong usage', () => {
  it.each([
    ['no command', [], /ndl <command> \[options\]/],
    ['an unknown command', ['list'], /no command "list", but ls, show/],
    ['an unknown option', ['ls', '--al'], /Unknown option '--al'.*See ndl ls --help/],
    ['a missing key', ['show'], /Usage: ndl show <key>/],
    ['too many words', ['ls', 'a', 'b'], /Usage: ndl ls \[pattern\]/],
    ['a time that is none', ['ls', '--older-than', 'soon'], /--older-than is a time with its unit, such as/],
    ['a time without a unit', ['run', 'k', '--wait', '2', '--', 'true'], /--wait is a time with its unit, such as .* not "2"/],
    ['a choice that is none', ['ls', '--sort', 'size'], /--sort is one of age, waiters, key, not "size"/],
    ['a table on Redis', ['ls', '--url', 'redis://host', '--table', 't'], /--table is no option of the store of this URL/],
    ['a table where Redis is the default', ['ls', '--table', 't'], /--table is no option/],
    ['a table on etcd', ['ls', '--url', 'etcd://host:2379', '--table', 't'], /--table is no option/],
    ['a table on ZooKeeper', ['ls', '--url', 'zookeeper://host:2181', '--table', 't'], /--table is no option/],
    ['a prefix on Postgres', ['release', 'k', '--url', 'postgres://host/db', '--key-prefix', 'p:'], /--key-prefix is no option/],
    ['a prefix on MySQL', ['ls', '--url', 'mysql://host/db', '--key-prefix', 'p:'], /--key-prefix is no option/],
    ['a prefix on ZooKeeper', ['ls', '--url', 'zookeeper://host:2181', '--key-prefix', 'p:'], /--key-prefix is no option/],
    ['a URL of another scheme', ['ls', '--url', 'http://u:geheim@host'], /The URL must be one of redis:/],
    ['a URL that is none', ['ls', '--url', 'redis:/u:geheim@host'], /The URL must be one of redis:/],
    ['a URL that cannot be read', ['ls', '--url', 'redis://u:geheim/%@host:port'], /The URL must be one of redis:/],
    ['a wrong limit', ['ls', '--limit', '0'], /--limit is a whole number from 1 on/],
    ['--store without a config file', ['ls', '--store', 'other'], /--store goes with a config file/],
    ['a config file that is not there', ['ls', '--config', 'nowhere.mjs'], /There is no file .*nowhere.mjs/],
    ['run without a command', ['run', 'k'], /Give the command after --/],
    ['run with a command that no -- comes before', ['run', 'k', 'echo', 'hi'], /Usage: ndl run <key> -- <command>/],
    ['a grace that outlasts the lease', ['run', 'k', '--grace', '10s', '--key-timeout', '19s', '--', 'true'], /--grace 10 s is too long/],
    ['a conflict exit code that is none', ['run', 'k', '--conflict-exit-code', '256', '--', 'true'], /at most 255/],
  ])('%s', (_, args, text) => fails(args, 2, text));

  it('with --json as a document on stderr', async () => {
    const { stderr, code } = await ndlHere(['ls', '--limit', 'x', '--json']);
    expect([code, errorIn(stderr).code]).toEqual([2, 'USAGE']);
  });
});

it('0: help and version', async () => {
  for (const args of [['--help'], ['help'], ['-h'], ['run', '--help'], ['show', '-h']]) {
    expect(await ndlHere(args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^ {2}ndl|ndl (run|show)/m) });
  }
  const { stdout } = await ndlHere(['--help']);
  for (const scheme of ['redis', 'rediss', 'postgres', 'mysql', 'etcd', 'etcds', 'zookeeper']) expect(stdout).toContain(` ${scheme}://`);
  expect((await cli.ndl(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe('3: the store', () => {
  it('is out of reach', async () => {
    const url = `redis://u:geheim@127.0.0.1:${await freePort()}`;
    const once = ['ls', 'show k', 'release k --owner o --reason r --yes', 'leader l --depose --reason r --yes', 'graph'];
    const commands = [...once, 'run k --wait 100ms -- true'].map((line) => line.split(' '));
    const at = ['--url', url, '--timeout', '2s'];
    await Promise.all(commands.map(([name, ...args]) => fails([name!, ...at, ...args], 3, /Redis is not connected within 2000 ms/)));
    // One error is one line.
    for (const result of await Promise.all(commands.slice(0, 5).map((args) => ndlHere([...args, ...at]))))
      expect(result.stderr).toMatch(/^.+\n$/);
    refused(await cli.ndl(['ls', ...at]), 3, /Redis is not connected within 2000 ms.*ECONNREFUSED.* \[LOCK_STORE\]$/m);
  });

  it('that does not answer is asked once, and its end is not waited for', async () => {
    const file = config(
      'ndl.mjs',
      `import { StoreError } from ${compiled('core.js')};
       import { memoryStore } from ${compiled('stores/memory/memory.store.js')};
       const store = memoryStore();
       const late = () => Promise.reject(new StoreError('no answer', { key: 'k', transient: true }));
       const inspector = { keys() { throw new Error('asked again') }, inspect() { throw new Error('asked again') } };
       export default { ...store, mutex: Object.assign(Object.create(store.mutex), { check: late }), inspector, close: () => new Promise(() => undefined) };`,
    );
    for (const args of [['ls'], ['show', 'k'], ['graph'], ['release', 'k']])
      expect(await ndlHere([...args, '--config', file])).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/^.*no answer.*\n$/),
        stdout: '',
      });
  });

  it('has no messages, so that it cannot be watched', async () => {
    const imports = `import { memoryStore } from ${compiled('stores/memory/memory.store.js')};`;
    const file = config('ndl.mjs', `${imports} export default { ...memoryStore(), bus: undefined };`);
    await fails(['watch', '--config', file], 3, /cannot be watched/);
  });

  it('says what is wrong once', () => {
    const cause = new StoreError('Postgres: no connection', { key: '', transient: true });
    const { message } = failureOf(new StoreError('Postgres: no connection', { key: 'k', transient: true, cause }));
    expect(message).toBe('Postgres: no connection [LOCK_STORE]');
  });

  it('refuses, and the passwords of URLs are not shown', async () => {
    const at = `127.0.0.1:${redis.server.port}`;
    const users = [`redis://:falsch-geheim@${at}`, `redis://someone:ge%20geheim@${at}`, `redis://${at}?password=geheim2`];
    for (const url of [...users, `redis://:a@geheim@${at}`])
      for (const flags of [[], ['--json']]) await fails(['ls', '--url', url, ...flags], 3, /WRONGPASS|NOAUTH|password/);
    await fails(['ls'], 3, /WRONGPASS/, { env: { REDIS_URL: users[0], DEBUG: '' } });
  });

  it.each(['postgres://app@server:geheim@host/db', 'mysql://app@host/db?password1=geheim', 'redis://:a geheim@host'])(
    'has a password that is in no line to copy, and in no message: %s',
    (url) => {
      expect(storeFlags(new Flags({ url, namespace: 'a:' }))).toBe(' --url … --namespace a:');
      expect(failureOf(new Error(`Nobody is at ${url.replace(' ', '%20')}`)).message).not.toContain('geheim');
    },
  );

  it('needs a package that is not installed', async () => {
    const folder = newFolder();
    cpSync(cli.folder(), join(folder, 'esm'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const file = join(folder, 'esm/cli/main.js');
    for (const [scheme, name] of Object.entries({ redis: 'ioredis', postgres: 'pg', mysql: 'mysql2' })) {
      refused(await cli.ndl(['ls', '--url', `${scheme}://:geheim@127.0.0.1:1/1`], { file }), 3, new RegExp(`npm install ${name}`));
    }
  });

  it('is one on this machine where none is given, and it says so', async () => {
    const { stderr } = await ndlHere(['ls', '--timeout', '300ms']);
    expect(stderr).toContain('No --url, config file or REDIS_URL: using redis://localhost:6379.');
  });
});

describe('a config file', () => {
  const store = (): string => `{ options: { host: '127.0.0.1', port: ${redis.server.port}, password: 'geheim' } }`;
  const works = async (args: string[], options?: CliOptions): Promise<void> => {
    const { code, stdout, stderr } = await cli.ndl(['ls', ...args], options);
    expect([code, stdout, stderr]).toEqual([0, 'No key is held.\n', '']);
  };

  it('is a module of either kind, given or found above; --url goes before one that was found', async () => {
    await works(['--config', config('a.mjs', `export default ${store()};`)]);
    const path = config('nestjs-distributed-lock.config.cjs', `module.exports = ${store()};`);
    const cwd = join(dirname(path), 'a/b');
    mkdirSync(cwd, { recursive: true });
    await works([], { cwd });
    const broken = { cwd: dirname(config('nestjs-distributed-lock.config.mjs', `throw new Error('not me')`)) };
    refused(await cli.ndl(['ls'], broken), 2, /config.mjs cannot be loaded: Error: not me/);
    await works(['--url', redis.url], broken);
  });

  it('has stores by name, and a namespace', async () => {
    const stores = `{ default: { url: 'redis://127.0.0.1:1' }, other: ${store()} }`;
    const path = config('a.mjs', `export default { stores: ${stores}, namespace: 'app1:' };`);
    refused(await cli.ndl(['ls', '--config', path, '--store', 'third']), 2, /has no store "third", but default, other/);
    await fails(['ls', '--config', path, '--store', 'other', '--timeout', '1s'], 2, /--timeout goes with a URL/);
    const on = ['--config', path, '--store', 'other'];
    for (const [args, key] of [
      [[], 'app1:k'],
      [['--namespace', 'x:'], 'x:k'],
    ] as const) {
      const { stdout } = await cli.ndl(['run', 'k', ...on, ...args, '--', 'sh', '-c', 'echo $LOCK_KEY']);
      expect(stdout).toBe(`${key}\n`);
    }
  });

  it('may export a store of its own client, which does not keep the program running', async () => {
    const folder = newFolder();
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const imports = `import { Redis } from 'ioredis'; import { redisStore } from ${compiled('stores/redis/redis.store.js')};`;
    const text = `${imports} export default redisStore({ client: new Redis(${JSON.stringify(redis.url)}) });`;
    await works(['--config', config('a.mjs', text, folder)]);
  });

  it.each([
    [`export const a = 1;`, 2, /has no default export/],
    [`export default { host: 'x', password: 'geheim' };`, 2, /"host" is an option of ioredis/],
    [`throw new Error('no redis://u:a@geheim@host:1?password=geheim here');`, 2, /u:\*\*\*@host:1\?password=\*\*\* here/],
    [`import './gone.mjs';`, 2, /cannot be loaded.*gone.mjs/],
    [`import 'no-such-package';`, 3, /npm install no-such-package/],
  ])('that is wrong is wrong usage: %s', async (text, code, message) => {
    refused(await cli.ndl(['ls', '--config', config('a.mjs', text)]), code, message);
  });
});
