// What the commands that only look print, on a real Redis with other processes.
import { normalised, useCli, withoutProgress } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { documentIn, startHolder, useRedis, type Holder } from './setting.js';

jest.setTimeout(60_000);

const redis = useRedis();
const { ndl, start } = useCli();
const holders: Holder[] = [];
const holder = async (): Promise<Holder> => {
  const started = await startHolder('redis', { url: redis.url });
  holders.push(started);
  return started;
};
afterEach(async () => {
  await Promise.all(holders.splice(0).map((each) => each.kill()));
  await redis.server.client().flushall();
});
const on = (...args: string[]): string[] => [...args, '--url', redis.url];

/** `shop` holds order:42 and another one waits for it. */
async function heldAndWaitedFor(): Promise<{ owner: string; token: number }> {
  const [one, other] = await Promise.all([holder(), holder()]);
  one.send({ type: 'hold', key: 'order:42', label: 'Orders.pay' });
  const held = await one.waitFor('holds');
  other.send({ type: 'hold', key: 'order:42', label: 'Orders.cancel' });
  await eventually(async () => expect(await redis.server.client().zcard('{order:42}:queue')).toBe(1));
  return held;
}

describe('ls', () => {
  it('prints a table, and a document with --json', async () => {
    const { owner } = await heldAndWaitedFor();
    const text = await ndl(on('ls'));
    expect(
      normalised(text.stdout)
        .split('\n')
        .map((line) => line.trimEnd()),
    ).toEqual([
      'KEY  KIND  HOLDER  LABEL  HELD FOR  ENDS IN  WAITERS  FIRST WAITS',
      'order:42  mutex  shop@<host>:<pid>  Orders.pay  <time>  <time>  1  <time>',
    ]);
    expect([text.code, withoutProgress(text.stderr)]).toEqual([0, '']);
    const json = await ndl(on('ls', '--json'));
    const { total, keys } = documentIn(json.stdout, 'ls');
    expect([json.code, withoutProgress(json.stderr), total]).toEqual([0, '', 1]);
    expect(keys[0]).toMatchObject({
      key: 'order:42',
      holders: [{ owner, app: 'shop', permits: null, told: { label: 'Orders.pay' } }],
      waiterCount: 1,
    });
    expect(keys[0].waiters[0].waitingFor).toBeGreaterThanOrEqual(0);
  });

  it('sorts before it cuts, and says that there is more', async () => {
    const one = await holder();
    for (const key of ['a', 'b', 'c']) {
      one.send({ type: 'hold', key });
      await one.waitFor('holds');
    }
    const { stdout, stderr } = await ndl(on('ls', '--sort', 'age', '--limit', '1', '--json'));
    expect(documentIn(stdout, 'ls')).toMatchObject({ total: 3, keys: [{ key: 'a' }] });
    expect(stderr).toContain('The first 1 of 3 keys');
    const names = async (...args: string[]) =>
      documentIn(await ndl(on('ls', '--json', ...args)).then((r) => r.stdout), 'ls').keys.map(({ key }: { key: string }) => key);
    expect(await names('--sort', 'key')).toEqual(['a', 'b', 'c']);
    expect(await names('[ab]')).toEqual([]);
    expect(await names('b*')).toEqual(['b']);
    expect(await names('--host', 'elsewhere')).toEqual([]);
    expect(await names('--older-than', '1h')).toEqual([]);
    expect(await names('--waited')).toEqual([]);
  });

  it('shows no escape sequence that another process has sent, and no style where nobody sees it', async () => {
    const one = await holder();
    one.send({ type: 'hold', key: 'k', label: 'a\u001b[2Jb\nc' });
    await one.waitFor('holds');
    const { stdout } = await ndl(on('ls'), { env: { FORCE_COLOR: '1' } });
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toContain('b c');
  });

  it('cuts a long key in its middle, but not with --wide', async () => {
    const one = await holder();
    const key = `start${'x'.repeat(80)}end`;
    one.send({ type: 'hold', key });
    await one.waitFor('holds');
    expect((await ndl(on('ls'))).stdout).toMatch(/^startx+…x+end /m);
    expect((await ndl(on('ls', '--wide'))).stdout).toContain(key);
  });

  it('prints its progress on stderr where there are many other keys', async () => {
    const FILL = `for i = 1, 2000000 do redis.call('SET', 'other:' .. i, i) end`;
    await redis.server.client().eval(FILL, 0);
    const one = await holder();
    one.send({ type: 'hold', key: 'k', keyTimeout: 30_000 });
    await one.waitFor('holds');
    const begun = performance.now();
    const { code, stdout, stderr } = await ndl(on('ls', '--json'));
    expect([code, documentIn(stdout, 'ls').total]).toEqual([0, 1]);
    expect(stderr).toMatch(/^(\d+ keys so far …\n)+$/);
    // Three seconds for a million, as docs/cli.md says, and as much again where the machine is busy.
    expect(performance.now() - begun).toBeLessThan(30_000);
  });

  it('says that there is none', async () => {
    expect((await ndl(on('ls'))).stdout).toBe('No key is held.\n');
  });
});

describe('show', () => {
  it('prints all of a key, and the line that would free it', async () => {
    const { owner } = await heldAndWaitedFor();
    const { stdout, code } = await ndl(on('show', 'order:42'));
    expect(normalised(stdout).split('\n')).toEqual([
      'key  order:42',
      'kind  mutex',
      'token  <token>, the last one that was given',
      'holder  shop@<host>:<pid>  Orders.pay, held for <time>, ends in <time>',
      'waiters  1, the first for <time>',
      '  1  shop@<host>:<pid>  Orders.cancel, <time>',
      '',
      'To take it away from shop@<host>:<pid>:',
      expect.stringMatching(/^ {2}ndl release order:42 --owner shop@<host>:<pid>:<uuid> --reason '…' --url …$/),
    ]);
    expect(stdout).toContain(owner);
    expect(code).toBe(0);
    const json = documentIn((await ndl(on('show', 'order:42', '--json'))).stdout, 'show');
    expect(json.key.holders[0].owner).toBe(owner);
  });

  it('says that a key is free by exit code 4', async () => {
    const { stdout, code } = await ndl(on('show', 'free', '--json'));
    expect([code, documentIn(stdout, 'show').key.kind]).toEqual([4, 'free']);
    expect((await ndl(on('show', 'free'))).stdout).toBe('key      free\nkind     free\nNobody holds it.\n');
  });
});

it('watch prints what happens, a document in each line, until Ctrl-C', async () => {
  const one = await holder();
  const [text, json] = [start(on('watch')), start(on('watch', 'k*', '--json'))];
  // It tells nothing of what was before: keys are taken until it has begun.
  let count = 0;
  await eventually(
    async () => {
      one.send({ type: 'hold', key: `k${count++}`, label: 'Work' });
      await one.waitFor('holds');
      expect(text.stdout()).toContain('taken');
      expect(json.stdout()).toContain('acquired');
    },
    { within: 20_000, every: 300 },
  );
  for (const each of [text, json]) each.signal('SIGINT');
  const [lines, documents] = [await text.ended, await json.ended];
  expect([lines.code, documents.code]).toEqual([0, 0]);
  expect(normalised(lines.stdout).split('\n').at(-1)).toMatch(
    /^<clock> {2}k\d+ {2}taken(?: after <time>)?, token <token> {2}Work of shop@<host>:<pid>$/,
  );
  for (const line of documents.stdout.trimEnd().split('\n'))
    expect(documentIn(line, 'watch')).toMatchObject({ event: 'acquired', label: 'Work', app: 'shop' });
});

it('watch --top prints a table each second', async () => {
  const one = await holder();
  one.send({ type: 'hold', key: 'k' });
  await one.waitFor('holds');
  const [text, json] = [start(on('watch', '--top')), start(on('watch', '--top', '--json'))];
  await eventually(() => expect(text.stdout().match(/^k /gm)?.length).toBeGreaterThanOrEqual(2), { within: 20_000 });
  await json.says(/"key":"k".*\n/);
  for (const each of [text, json]) each.signal('SIGTERM');
  documentIn((await json.ended).stdout.split('\n')[0]!, 'top');
  expect((await text.ended).code).toBe(0);
});

describe('graph', () => {
  it('prints who waits for whom, also for Graphviz and Mermaid', async () => {
    expect((await ndl(on('graph'))).stdout).toBe('Nobody waits.\n');
    await heldAndWaitedFor();
    const { stdout, code } = await ndl(on('graph'));
    expect(normalised(stdout).split('\n')).toEqual([
      'WAITS  FOR  HELD BY',
      'Orders.cancel of shop@<host>:<pid>  order:42  Orders.pay of shop@<host>:<pid>',
    ]);
    expect(code).toBe(0);
    expect(normalised((await ndl(on('graph', '--dot'))).stdout)).toBe(
      'digraph {\n  "Orders.cancel of shop@<host>:<pid>" -> "Orders.pay of shop@<host>:<pid>" [label="order:42"]\n}',
    );
    expect(normalised((await ndl(on('graph', '--mermaid'))).stdout)).toBe(
      'graph LR\n  n0["Orders.cancel of shop@<host>:<pid>"] -->|"order:42"| n1["Orders.pay of shop@<host>:<pid>"]',
    );
  });

  it('finds a deadlock of two processes: exit code 6', async () => {
    const [one, other] = await Promise.all([holder(), holder()]);
    one.send({ type: 'nest', keys: ['a', 'b'], label: 'One' });
    other.send({ type: 'nest', keys: ['b', 'a'], label: 'Other' });
    await Promise.all([one.waitFor('holds'), other.waitFor('holds')]);
    for (const each of [one, other]) each.send({ type: 'go' });
    await eventually(async () => expect(await redis.server.client().exists('{a}:queue', '{b}:queue')).toBe(2));
    const { stdout, code } = await ndl(on('graph', '--json'));
    const { deadlocks, edges } = documentIn(stdout, 'graph');
    expect([code, deadlocks.length, edges.length]).toEqual([6, 1, 2]);
    const text = await ndl(on('graph'));
    expect(text.stdout).toMatch(/^deadlock {2}.*holds a and waits for b.*|holds b and waits for a/m);
    expect((await ndl(on('show', 'a'))).stdout).toMatch(/^deadlock {2}/m);
  });
});

it('leader says who leads, and 4 if nobody does', async () => {
  expect(await ndl(on('leader', 'cleaner'))).toMatchObject({ code: 4, stdout: 'Nobody leads "cleaner".\n0 stand by.\n' });
  const one = await holder();
  one.send({ type: 'hold', key: 'cleaner-leader' });
  const { owner } = await one.waitFor('holds');
  const { stdout, code } = await ndl(on('leader', 'cleaner'));
  expect([code, normalised(stdout)]).toEqual([0, 'shop@<host>:<pid> leads "cleaner" for <time>, with token <token>.\n0 stand by.']);
  expect(documentIn((await ndl(on('leader', 'cleaner', '--json'))).stdout, 'leader').leader.holders[0].owner).toBe(owner);
  const deposed = await ndl(on('leader', 'cleaner', '--depose', '--reason', 'test', '--yes', '--json'));
  expect(documentIn(deposed.stdout, 'release')).toMatchObject({ outcome: 'gave back', holder: owner });
});
