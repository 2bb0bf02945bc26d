// `npm run demo` and `npm run demo:leader`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../support/eventually.js';
import { isAlive } from '../support/is-alive.js';
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

describe('the demo of leaders', () => {
  /** The processes that a run has started, by what it says. */
  const pidsOf = (stdout: string) => [...stdout.matchAll(/\(pid (\d+)\) stands by/g)].map(([, pid]) => Number(pid));
  const QUICK = '--key-timeout 1000 --work 50';

  it('shows four changes of the leader, a late write refused, ends with 0, and leaves no key and no process', async () => {
    const { stdout } = await endsWith(0, 'demo-leader.mjs', QUICK, onRedis);
    expect(stdout.match(/^(kill -9|SIGSTOP|SIGTERM) +[ABC] +[ABC] +\d+ ms +\d+ ms +\d+ ms$/gm)).toHaveLength(4);
    expect(stdout).toMatch(/^The ledger: \d\d+ writes accepted, of 5 terms; [1-9]\d* refused\.$/m);
    expect(stdout).toMatch(/^[ABC] was frozen for longer than its lease, and wrote when [ABC] led: the ledger has refused that/m);
    const pids = pidsOf(stdout);
    expect(new Set(pids).size).toBe(6);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await client.dbsize()).toBe(0);
  });

  it('ends with 1 and says why, by the ledger, where an election lets everybody win', async () => {
    const broken = `--import ${pathToFileURL(resolve('test/e2e/everybody-leads.mjs')).href}`;
    const { stdout, stderr } = await endsWith(1, 'demo-leader.mjs', QUICK, { ...onRedis, NODE_OPTIONS: broken });
    expect(stdout).toMatch(/A answers .*, B answers .*, C answers/);
    expect(stderr).toContain('two were at work at once');
    expect(stdout).not.toContain('no two leaders');
    expect(pidsOf(stdout).filter(isAlive)).toEqual([]);
  });

  it('ends with 1 where there is no Redis to share, and says what to install', async () => {
    const { stdout, stderr } = await endsWith(1, 'demo-leader.mjs', QUICK, { REDIS_URL: '', PATH: '/nowhere' });
    expect([stderr, stdout]).toEqual([expect.stringMatching(/needs a redis-server[^]*set REDIS_URL[^]*apt-get install redis-server/), '']);
  });

  it('ends what it started and removes its keys on Ctrl-C', async () => {
    const run = startDemo('demo-leader.mjs', '--key-timeout 60000', onRedis);
    await eventually(() => run.stdout.includes('A answers') && pidsOf(run.stdout).length === 3);
    run.child.kill('SIGINT');
    expect(await run.ended).toBe(130);
    expect(pidsOf(run.stdout).filter(isAlive)).toEqual([]);
    expect(await client.dbsize()).toBe(0);
  });

  describe('judges a ledger', () => {
    let ofTheLedger: (entries: object[], frozen?: Set<number>) => string[];
    beforeAll(async () => ({ ofTheLedger } = (await import(resolve('scripts/demo/leader-verdict.mjs'))) as never));

    /** Tokens and who wrote with them, as `1 by 7`. */
    const ledger = (...lines: string[]) =>
      lines.map((line, index) => {
        const [, token, pid, refused, at = index + 1] = /^(\d) by (\d)( refused)?(?: at (\d))?$/.exec(line)!;
        return { token: Number(token), pid: Number(pid), accepted: !refused, at: Number(at) };
      });

    it.each<[string, string[], number[], RegExp]>([
      ['of two leaders one after the other', ['1 by 7', '2 by 8', '2 by 8'], [], /^$/],
      ['where an older leader was refused after a newer one', ['1 by 7', '2 by 8', '1 by 7 refused'], [], /1 writes .* two were at work/],
      ['where that leader was frozen', ['2 by 8', '1 by 7 refused'], [7], /^$/],
      ['whose fence let an older leader in', ['2 by 8', '1 by 7'], [], /accepted token 1 after 2/],
      ['whose fence let in one that was frozen', ['2 by 8', '1 by 7'], [7], /^[^\n]*accepted token 1 after 2[^\n]*$/],
      ['where two processes have one token', ['1 by 7', '1 by 8'], [], /7 and 8, wrote with one token, 1/],
      ['that refuses what is new', ['1 by 7', '2 by 8 refused'], [], /refused token 2/],
      ['whose clock went back', ['1 by 7 at 2', '1 by 7 at 1'], [], /clock/],
    ])('%s', (_, lines, frozen, verdict) => expect(ofTheLedger(ledger(...lines), new Set(frozen)).join('\n')).toMatch(verdict));
  });
});
