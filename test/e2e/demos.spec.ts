// `npm run demo`, and the first change of CONTRIBUTING.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative, resolve } from 'node:path';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { programOf } from '../support/services.js';
import { openShop } from './shop.js';
import { urlOf } from './shops.js';

/** No server is named, and a redis-server can be started. */
const NOBODY: NodeJS.ProcessEnv = { REDIS_URL: '', DATABASE_URL: '' };
const folders: string[] = [];
let server: RedisServer;
let client: ReturnType<RedisServer['client']>;
let onRedis: NodeJS.ProcessEnv;

beforeAll(async () => {
  server = await startRedis({ port: 'free' });
  client = server.client();
  onRedis = { REDIS_URL: urlOf(server) };
  NOBODY.PATH = [dirname(await programOf('redis-server')), process.env.PATH].join(delimiter);
});
afterAll(async () => {
  folders.forEach((folder) => rmSync(folder, { recursive: true }));
  await server.stop();
});

/** Starts a script of scripts/; `npm test` has built what it runs. */
function startDemo(script: string, args: string, env: NodeJS.ProcessEnv = {}) {
  const flags = script === 'load.mjs' ? [] : ['--no-build'];
  const child = spawn(process.execPath, [`scripts/${script}`, ...flags, ...args.split(' ')], { env: { ...process.env, ...env } });
  const run = { child, stdout: '', stderr: '', ended: once(child, 'close').then(([code]: unknown[]) => code) };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (run.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (run.stderr += text));
  return run;
}

async function endsWith(code: number, script: string, args: string, env?: NodeJS.ProcessEnv) {
  const run = startDemo(script, args, env);
  if ((await run.ended) !== code) throw new Error(`It did not end with ${code}:\n${run.stdout}\n${run.stderr}`);
  return run;
}

describe('the demo of versions', () => {
  /** The table's rows: version → column → number. */
  const rowsOf = (stdout: string): Record<string, Record<string, number>> => {
    const lines = stdout.split('\n').filter((line) => /^(version|none|local|naive|lock|apple) +(requests|\d)/.test(line));
    const [names, ...rows] = lines.map((line) => line.trim().split(/ {2,}/));
    return Object.fromEntries(
      rows.map(([version, ...cells]) => [version, Object.fromEntries(cells.map((cell, i) => [names![i + 1], Number(cell)]))]),
    );
  };

  /** A PATH with the programs of ours, one left out. */
  const pathWithout = (program: string): string => {
    const folder = mkdtempSync(join(tmpdir(), 'path-'));
    folders.push(folder);
    for (const from of process.env.PATH!.split(delimiter).filter((each) => existsSync(each))) {
      for (const name of readdirSync(from))
        if (name !== program && !existsSync(join(folder, name))) symlinkSync(join(from, name), join(folder, name));
    }
    return folder;
  };

  it('--keep leaves a shop and a dashboard open, until Ctrl-C', async () => {
    const run = startDemo('demo.mjs', '--keep --requests 40 --concurrency 10 --instances 2', NOBODY);
    await eventually(() => run.stdout.includes('Ctrl-C'));
    const [url] = /http:\S+\/locks/.exec(run.stdout)!;
    const page = await fetch(url, { headers: { authorization: `Basic ${btoa('ops:demo')}` } });
    expect([page.status, (await fetch(url)).status]).toEqual([200, 401]);
    run.child.kill('SIGINT');
    expect(await run.ended).toBe(130);
    await expect(fetch(url)).rejects.toThrow();
  });

  /** Of the nodes of the Cluster that it says to use. */
  const portsOf = (stdout: string): number[] => {
    const [, nodes = ''] = /whose three nodes are (.+)\./.exec(stdout) ?? [];
    return [...nodes.matchAll(/:(\d+)/g)].map(([, port]) => Number(port));
  };

  const isTaken = (port: number): Promise<boolean> =>
    new Promise((isOpen) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', () => isOpen(false)).once('connect', () => isOpen(true));
      socket.once('connect', () => socket.destroy());
    });

  /** All but the lock oversell; resolves with what was printed. */
  async function oversells(args: string, env: NodeJS.ProcessEnv): Promise<string> {
    const { stdout } = await endsWith(0, 'demo.mjs', `--requests 120 --concurrency 60 --instances 2 --work 10 ${args}`, env);
    const { none, local, lock } = rowsOf(stdout);
    expect(lock).toMatchObject({ requests: 120, errors: 0, sold: 60, left: 0, oversold: 0 });
    expect(none!.oversold).toBeGreaterThan(0);
    expect(local!.oversold).toBeGreaterThan(0);
    expect(stdout.trim().split('\n').at(-1)).toBe(
      `Seen: of 60 units ${none!.sold} were sold without a lock, and 60 with @DistributedLock. Next: README.md, and sample-app/README.md, this shop to copy.`,
    );
    return stdout;
  }

  it('shows on Redis that all but the lock oversell, ends with 0, and leaves no key', async () => {
    expect(await oversells('--skus 2', onRedis)).toContain('Store: the Redis of REDIS_URL');
    expect(await client.dbsize()).toBe(0);
  });

  it('shows the same on a Redis Cluster of its own, whose servers end with it', async () => {
    const ports = portsOf(await oversells('--store cluster --skus 4', NOBODY));
    expect(ports).toHaveLength(3);
    for (const port of ports) await eventually(async () => !(await isTaken(port)));
  });

  it('shows the same in files and without any server, and says why it uses files', async () => {
    const stdout = await oversells('--skus 2', { ...NOBODY, PATH: pathWithout('redis-server') });
    const why = /^Store: files of this machine, in (.+), as there is neither REDIS_URL nor a redis-server on the PATH\.$/m;
    expect(existsSync(why.exec(stdout)![1]!)).toBe(false);
  });

  it('leaves no server of its Cluster behind when it is killed', async () => {
    const run = startDemo('demo.mjs', '--store cluster --requests 1000 --concurrency 10 --instances 1 --work 600000', NOBODY);
    await eventually(() => portsOf(run.stdout).length === 3);
    const ports = portsOf(run.stdout);
    expect(await Promise.all(ports.map(isTaken))).toEqual([true, true, true]);
    run.child.kill('SIGKILL');
    await run.ended;
    for (const port of ports) await eventually(async () => !(await isTaken(port)));
  });

  it.each([
    ['where there is no server for a Cluster', '--store cluster', { PATH: '/nowhere' }, /needs a redis-server[^]*apt-get install[^]*brew/],
    ['which stores there are', '--store mongo', {}, /^--store \(or STORE\) is one of redis, cluster, postgres, file, not mongo\.$/m],
    ['that going without a lock did no harm', '--store file --requests 10 --concurrency 1 --skus 1', {}, /none: did not oversell/],
  ])('ends with 1 and says %s', async (_, args, env, message) => {
    expect((await endsWith(1, 'demo.mjs', args, { ...NOBODY, ...env })).stderr).toMatch(message);
  });

  it('has a load for a shop that is open, which shows what was sold, and ends with 1 where no shop is', async () => {
    const shop = await openShop({ STORE_URL: `${urlOf(server)}/1` }, 'sample-app/src/main.js');
    try {
      const run = await endsWith(0, 'load.mjs', `${shop.url} --requests 120 --concurrency 60`);
      expect(rowsOf(run.stdout).apple).toMatchObject({ requests: 120, errors: 0, sold: 60, left: 0, oversold: 0 });
    } finally {
      await shop.close();
    }
    await endsWith(1, 'load.mjs', shop.url);
  });

  it('ends what it started and removes its keys on Ctrl-C', async () => {
    const run = startDemo('demo.mjs', '--requests 1000 --concurrency 10 --instances 1 --work 600000', onRedis);
    await eventually(async () => (await client.dbsize()) > 0);
    run.child.kill('SIGINT');
    expect(await run.ended).toBe(130);
    expect(await client.dbsize()).toBe(0);
  });
});

it('the first change of CONTRIBUTING.md fails in the one suite that it names', async () => {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'first-change-')));
  folders.push(copy);
  cpSync('.', copy, { recursive: true, filter: (path) => !/(^|\/)(node_modules|\.git|\.cache|dist|coverage)$/.test(path) });
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));
  const page = readFileSync('CONTRIBUTING.md', 'utf8');
  const [, file = '', first = '', added = ''] = /`(lib\/\S+)`:\n+```diff\n (.*\n)\+(.*\n)```/.exec(page)!;
  const changed = readFileSync(file, 'utf8').replace(first, () => first + added);
  writeFileSync(join(copy, file), changed);
  const redOf = async (words: string[]): Promise<string[]> => {
    const args = ['scripts/test.mjs', '--tier', 'quick', ...words, '--silent', '--json', '--outputFile=red.json'];
    await once(spawn(process.execPath, args, { cwd: copy, stdio: 'ignore' }), 'exit');
    const { testResults } = JSON.parse(readFileSync(join(copy, 'red.json'), 'utf8')) as { testResults: { name: string; status: string }[] };
    return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(copy, name));
  };
  // The second time with only those: what the change makes red stays red.
  expect(await redOf(await redOf([]))).toEqual([/one suite, `(.*?)`/.exec(page)![1]]);
}, 1_800_000);
