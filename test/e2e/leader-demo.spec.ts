import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../support/eventually.js';
import { isAlive } from '../support/is-alive.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startDemo } from './demo.js';
import { urlOf } from './shops.js';

/** The processes that a run has started, by what it says. */
const pidsOf = (stdout: string) => [...stdout.matchAll(/\(pid (\d+)\) stands by/g)].map(([, pid]) => Number(pid));

const QUICK = '--key-timeout 1000 --work 50';

jest.setTimeout(120_000);

describe('the demo of leaders', () => {
  let server: RedisServer;
  let client: ReturnType<RedisServer['client']>;

  beforeAll(async () => {
    server = await startRedis();
    client = server.client();
  });

  afterAll(() => server.stop());

  it('shows four changes of the leader in time, a late write refused, ends with 0, and leaves no key and no process', async () => {
    const run = startDemo('demo-leader.mjs', QUICK, { REDIS_URL: urlOf(server) });
    const code = await run.ended;
    if (code !== 0) throw new Error(`It ended with ${String(code)}:\n${run.stdout}\n${run.stderr}`);
    expect(run.stdout.match(/^(kill -9|SIGSTOP|SIGTERM) +[ABC] +[ABC] +\d+ ms +\d+ ms +\d+ ms$/gm)).toHaveLength(4);
    expect(run.stdout).toMatch(/^The ledger: \d\d+ writes accepted, of 5 terms; [1-9]\d* refused\.$/m);
    expect(run.stdout).toMatch(/^[ABC] was frozen for longer than its lease, and wrote when [ABC] led: the ledger has refused that/m);
    const pids = pidsOf(run.stdout);
    expect(new Set(pids).size).toBe(6);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await client.dbsize()).toBe(0);
  });

  it('ends with 1 and says why, by the ledger, where an election lets everybody win', async () => {
    const broken = `--import ${pathToFileURL(resolve('test/e2e/everybody-leads.mjs')).href}`;
    const run = startDemo('demo-leader.mjs', QUICK, { REDIS_URL: urlOf(server), NODE_OPTIONS: broken });
    expect(await run.ended).toBe(1);
    expect(run.stdout).toMatch(/A answers .*, B answers .*, C answers/);
    expect(run.stderr).toContain('two were at work at once');
    expect(run.stdout).not.toContain('no two leaders');
    expect(pidsOf(run.stdout).filter(isAlive)).toEqual([]);
  });

  it('ends with 1 where there is no Redis to share, and says what to install', async () => {
    const run = startDemo('demo-leader.mjs', QUICK, { REDIS_URL: '', PATH: '/nowhere' });
    expect(await run.ended).toBe(1);
    expect(run.stderr).toMatch(/serves one process only[^]*apt-get install redis-server[^]*REDIS_URL/);
    expect(run.stdout).toBe('');
  });

  it('ends what it started and removes its keys on Ctrl-C', async () => {
    const run = startDemo('demo-leader.mjs', '--key-timeout 60000', { REDIS_URL: urlOf(server) });
    await eventually(() => run.stdout.includes('A answers') && pidsOf(run.stdout).length === 3, { within: 30_000 });
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

    it.each<[string, string[], RegExp]>([
      ['of two leaders one after the other', ['1 by 7', '2 by 8', '2 by 8'], /^$/],
      ['where an older leader was refused after a newer one', ['1 by 7', '2 by 8', '1 by 7 refused'], /1 writes .* two were at work/],
      ['whose fence let an older leader in', ['2 by 8', '1 by 7'], /accepted token 1 after 2/],
      ['where two processes have one token', ['1 by 7', '1 by 8'], /7 and 8, wrote with one token, 1/],
      ['that refuses what is new', ['1 by 7', '2 by 8 refused'], /refused token 2/],
      ['whose clock went back', ['1 by 7 at 2', '1 by 7 at 1'], /clock/],
    ])('%s', (_, lines, verdict) => expect(ofTheLedger(ledger(...lines)).join('\n')).toMatch(verdict));

    it('excuses the late write of a leader that was frozen, but not a fence that lets it in', () => {
      expect(ofTheLedger(ledger('2 by 8', '1 by 7 refused'), new Set([7]))).toEqual([]);
      expect(ofTheLedger(ledger('2 by 8', '1 by 7'), new Set([7]))).toEqual([expect.stringContaining('accepted token 1 after 2')]);
    });
  });
});
