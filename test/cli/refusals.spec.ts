// Every exit code that says no, config files, and passwords, which are never shown.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync, cpSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { useCli, withoutProgress, type CliResult } from '../support/cli.js';
import { freePort } from '../support/free-port.js';
import { documentIn, errorIn, startHolder, useRedis } from './setting.js';

jest.setTimeout(60_000);

const redis = useRedis();
const { ndl, file } = useCli();
const folders: string[] = [];
const newFolder = (): string => folders[folders.push(mkdtempSync(join(tmpdir(), 'ndl-'))) - 1]!;
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));
const fails = async (args: string[], code: number, text: RegExp, options = {}): Promise<CliResult> => {
  const result = await ndl(args, options);
  expect([result.code, result.stderr, result.stdout]).toEqual([code, expect.stringMatching(text), '']);
  expect(result.stderr).not.toContain('geheim');
  return result;
};

describe('2: wrong usage', () => {
  it.each([
    ['no command', [], /ndl <command> \[options\]/],
    ['an unknown command', ['list'], /no command "list", but ls, show/],
    ['an unknown option', ['ls', '--al'], /Unknown option '--al'.*See ndl ls --help/],
    ['a missing key', ['show'], /Usage: ndl show <key>/],
    ['too many words', ['ls', 'a', 'b'], /Usage: ndl ls \[pattern\]/],
    ['a time that is none', ['ls', '--older-than', 'soon'], /--older-than is a time such as/],
    ['a choice that is none', ['ls', '--sort', 'size'], /--sort is one of age, waiters, key, not "size"/],
    ['a URL of another scheme', ['ls', '--url', 'http://u:geheim@host'], /The URL is none of redis:/],
    ['a URL that is none', ['ls', '--url', 'redis:/u:geheim@host'], /The URL is none of redis:/],
    ['a URL that cannot be read', ['ls', '--url', 'redis://u:geheim/%@host:port'], /The URL is none of redis:/],
    ['a wrong limit', ['ls', '--limit', '0'], /--limit is a whole number from 1 on/],
    ['--store without a config file', ['ls', '--store', 'other'], /--store goes with a config file/],
    ['a config file that is not there', ['ls', '--config', 'nowhere.mjs'], /There is no file .*nowhere.mjs/],
    ['run without a command', ['run', 'k'], /Give the command after --/],
    ['a grace that outlasts the lease', ['run', 'k', '--grace', '10s', '--key-timeout', '19s', '--', 'true'], /--grace 10 s is too long/],
    ['a conflict exit code that is none', ['run', 'k', '--conflict-exit-code', '256', '--', 'true'], /at most 255/],
  ])('%s', async (_, args, text) => void (await fails(args, 2, text)));

  it('with --json as a document on stderr', async () => {
    const { stderr, code } = await ndl(['ls', '--limit', 'x', '--json']);
    expect(code).toBe(2);
    expect(errorIn(stderr).code).toBe('USAGE');
  });
});

it('0: help and version', async () => {
  for (const args of [['--help'], ['help'], ['-h'], ['run', '--help'], ['show', '-h']]) {
    expect(await ndl(args)).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^ {2}ndl|ndl (run|show)/m) });
  }
  expect((await ndl(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe('3: the store', () => {
  it('is out of reach', async () => {
    const url = `redis://u:geheim@127.0.0.1:${await freePort()}`;
    for (const args of [['ls'], ['show', 'k'], ['release', 'k', '--owner', 'o', '--reason', 'r', '--yes'], ['leader', 'l'], ['graph']]) {
      await fails([...args, '--url', url, '--timeout', '300ms'], 3, /Redis is not connected within 300 ms.*ECONNREFUSED/);
    }
    await fails(['run', 'k', '--wait', '100ms', '--url', url, '--timeout', '300ms', '--', 'true'], 3, /Redis is not connected/);
  });

  it('refuses, and the passwords of URLs are not shown', async () => {
    const at = `127.0.0.1:${redis.server.port}`;
    for (const url of [
      `redis://:falsch-geheim@${at}`,
      `redis://someone:ge%20geheim@${at}`,
      `redis://${at}?password=geheim2`,
      `redis://:a@geheim@${at}`,
    ]) {
      for (const flags of [[], ['--json']]) await fails(['ls', '--url', url, '--timeout', '2s', ...flags], 3, /WRONGPASS|NOAUTH|password/);
    }
    const { stderr } = await fails(['ls'], 3, /WRONGPASS/, { env: { REDIS_URL: `redis://:falsch-geheim@${at}`, DEBUG: '' } });
    expect(stderr).not.toContain('falsch');
  });

  it('needs a package that is not installed', async () => {
    const folder = newFolder();
    cpSync(dirname(dirname(file)), join(folder, 'esm'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const copy = join(folder, 'esm/cli/main.js');
    for (const [scheme, name] of Object.entries({ redis: 'ioredis', postgres: 'pg', mysql: 'mysql2' })) {
      const { code, stderr } = await ndl(['ls', '--url', `${scheme}://:geheim@127.0.0.1:1/x`], { file: copy });
      expect([code, stderr]).toEqual([3, expect.stringContaining(`npm install ${name}`)]);
      expect(stderr).not.toContain('geheim');
    }
  });
});

describe('release', () => {
  const on = (...args: string[]): string[] => ['release', 'order:42', '--url', redis.url, ...args];

  it('4: nobody holds it; 2: no owner, no reason, nobody to ask; 5: another owner, another token; 0: given back', async () => {
    await fails(on('--owner', 'o', '--reason', 'r', '--yes'), 4, /Nobody holds "order:42"/);
    const holder = await startHolder('redis', { url: redis.url });
    holder.send({ type: 'hold', key: 'order:42', label: 'Orders.pay' });
    const { owner, token } = await holder.waitFor('holds');
    await fails(on('--reason', 'r', '--yes'), 2, new RegExp(`is held by ${owner}.*Orders.pay.*--owner`));
    await fails(on('--owner', owner, '--yes'), 2, /Give a --reason/);
    expect(await ndl(on('--owner', owner, '--reason', 'r'))).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') });
    await fails(on('--owner', `${owner}x`, '--reason', 'r', '--yes'), 5, /is held by .*, and not by/);
    const other = await ndl(on('--owner', owner, '--token', String(token - 1), '--reason', 'r', '--yes', '--json'));
    expect([other.code, documentIn(other.stdout, 'release').outcome]).toEqual([5, 'changed']);
    expect(errorIn(other.stderr).code).toBe('CHANGED');
    const { code, stdout, stderr } = await ndl(on('--owner', owner, '--token', String(token), '--reason', 'stuck', '--yes'));
    expect([code, stderr, stdout]).toEqual([
      0,
      '',
      expect.stringMatching(/^before {2}held by .* \(Orders.pay\) for .*; 0 wait\ngiven back: free\n$/),
    ]);
    expect((await holder.waitFor('lost')).key).toBe('order:42');
    await holder.kill();
  });

  it('takes by force what is not given back, and keeps it', async () => {
    const holder = await startHolder('redis', { url: redis.url });
    holder.send({ type: 'hold', key: 'order:42', isStubborn: true });
    const { owner } = await holder.waitFor('holds');
    const { stdout, code } = await ndl(on('--owner', owner, '--reason', 'r', '--yes', '--grace', '300ms', '--keep', '20s', '--json'));
    const { outcome, after } = documentIn(stdout, 'release');
    expect([code, outcome, after.holders[0].phase]).toEqual([0, 'forced', 'kept']);
    await holder.kill();
    await redis.server.client().flushall();
  });
});

describe('a config file', () => {
  const store = (): string => `{ options: { host: '127.0.0.1', port: ${redis.server.port}, password: 'geheim' } }`;
  const config = (name: string, text: string, folder = newFolder()): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const works = async (args: string[], options = {}): Promise<void> => {
    const { code, stdout, stderr } = await ndl(['ls', ...args], options);
    expect([code, stdout, withoutProgress(stderr)]).toEqual([0, 'No key is held.\n', '']);
  };

  it('is a module of either kind, given or found above; --url goes before one that was found', async () => {
    await works(['--config', config('a.mjs', `export default ${store()};`)]);
    await works(['--config', config('a.cjs', `module.exports = ${store()};`)]);
    const path = config('nestjs-distributed-lock.config.js', `module.exports = ${store()};`);
    const below = join(dirname(path), 'a/b');
    mkdirSync(below, { recursive: true });
    await works([], { cwd: below });
    const broken = config('nestjs-distributed-lock.config.mjs', `throw new Error('not me')`);
    await fails(['ls'], 2, /config.mjs cannot be loaded: Error: not me/, { cwd: dirname(broken) });
    await works(['--url', redis.url], { cwd: dirname(broken) });
  });

  it('has stores by name, and a namespace', async () => {
    const path = config(
      'a.mjs',
      `export default { stores: { default: { url: 'redis://127.0.0.1:1' }, other: ${store()} }, namespace: 'app1:' };`,
    );
    await works(['--config', path, '--store', 'other']);
    await fails(['ls', '--config', path, '--store', 'third'], 2, /has no store "third", but default, other/);
    await fails(['ls', '--config', path, '--store', 'other', '--timeout', '1s'], 2, /--timeout goes with a URL/);
    const { stdout } = await ndl(['run', 'k', '--config', path, '--store', 'other', '--', 'sh', '-c', 'echo $LOCK_KEY']);
    expect(stdout).toBe('app1:k\n');
    const { stdout: own } = await ndl([
      'run',
      'k',
      '--config',
      path,
      '--store',
      'other',
      '--namespace',
      'x:',
      '--',
      'sh',
      '-c',
      'echo $LOCK_KEY',
    ]);
    expect(own).toBe('x:k\n');
  });

  it('may export a store of its own client, which does not keep the program running', async () => {
    const folder = newFolder();
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const lib = JSON.stringify(join(dirname(dirname(file)), 'stores/redis/redis.store.js'));
    const text = `import { Redis } from 'ioredis'; import { redisStore } from ${lib}; export default redisStore({ client: new Redis(${JSON.stringify(redis.url)}) });`;
    await works(['--config', config('a.mjs', text, folder)]);
  });

  it('that is wrong is wrong usage', async () => {
    await fails(['ls', '--config', config('a.mjs', 'export const a = 1;')], 2, /has no default export/);
    await fails(
      ['ls', '--config', config('a.mjs', `export default { host: 'x', password: 'geheim' };`)],
      2,
      /"host" is an option of ioredis/,
    );
    await fails(
      ['ls', '--config', config('a.mjs', `throw new Error('no redis://u:a@geheim@host:1?password=geheim here');`)],
      2,
      /u:\*\*\*@host:1\?password=\*\*\* here/,
    );
    await fails(['ls', '--config', config('a.mjs', `import './gone.mjs';`)], 2, /cannot be loaded.*gone.mjs/);
    await fails(['ls', '--config', config('a.mjs', `import 'no-such-package';`)], 3, /npm install no-such-package/);
  });
});

it('says on stderr which Redis it takes where none is given', async () => {
  expect((await ndl(['ls', '--timeout', '300ms'])).stderr).toContain('No --url, config file or REDIS_URL: using redis://localhost:6379.');
});

it('--key-prefix is that of ioredis', async () => {
  await redis.server.client().set('pre:k', 'someone@host:1:00000000-0000-4000-8000-000000000000', 'PX', 60_000);
  const { stdout } = await ndl(['show', 'k', '--url', redis.url, '--key-prefix', 'pre:']);
  expect(stdout).toContain('holder   someone@host:1');
});
