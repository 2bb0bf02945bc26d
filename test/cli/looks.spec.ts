// What the commands that only look print, on a real Redis. A process that is slow to answer is shown without its label, so those are looked at again.
import type { Documents } from '../../lib/operate/ndl-document.js';
import { EXIT } from '../../lib/cli/failure.js';
import { COMMANDS } from '../../lib/cli/ndl.js';
import { STORE_OPTIONS } from '../../lib/cli/open-store.js';
import { shellQuoted } from '../../lib/cli/output.js';
import { ndlHere, normalised, startHere, withoutProgress } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { blocksOf, read } from '../support/markdown.js';
import { documentIn, hold, useRedis } from './setting.js';

const redis = useRedis();
const SOMEONE = 'someone@host:1:00000000-0000-4000-8000-000000000000';
const OPS_TOLD = 'nestjs-distributed-lock:ops:told';
const ndl = (...args: string[]) => ndlHere([...args, '--url', redis.url]);
const linesOf = async (...args: string[]): Promise<string[]> => normalised((await ndl(...args)).stdout).split('\n');
const documentOf = async <Command extends keyof Documents>(command: Command, ...args: string[]) =>
  documentIn((await ndl(command, ...args, '--json')).stdout, command);

describe('docs/cli.md', () => {
  it('shows what the commands print', async () => {
    await hold(redis.service(), 'cleaner-leader', 'Cleaner.lead');
    const { owner } = await hold(redis.service(), 'order:42', 'OrderService.pay');
    void hold(redis.service(), 'order:42', 'OrderService.cancel').catch(() => undefined);
    await eventually(async () => expect(await redis.server.client().zcard('{order:42}:queue')).toBe(1));
    const shown = blocksOf('docs/cli.md')
      .filter(({ text }) => text.startsWith('$ ndl ') && !text.startsWith('$ ndl watch'))
      .map(({ text }) => text.split('\n'));
    expect(shown.length).toBe(4);
    const shapeOf = (text: string): string[] => normalised(text.replaceAll(/^ +/gm, '')).split('\n');
    for (const [command = '', ...lines] of shown) {
      const words = [...command.slice('$ ndl '.length).matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
      const args = words.map((word) => (word.startsWith('shop@') ? owner : word));
      const print = async () => (await ndlHere(args, { env: { REDIS_URL: redis.url } })).stdout;
      if (words[0] === 'release') expect(shapeOf((await print()).replace('(–)', '(OrderService.pay)'))).toEqual(shapeOf(lines.join('\n')));
      else await eventually(async () => expect(shapeOf(await print())).toEqual(shapeOf(lines.join('\n'))));
    }
  });

  it('has every command with its options, and every exit code', () => {
    const page = read('docs/cli.md');
    const options = [...Object.values(COMMANDS).flatMap(({ flags }) => Object.keys(flags)), ...Object.keys(STORE_OPTIONS)];
    expect(options.filter((name) => !page.includes(`--${name}`))).toEqual([]);
    expect(Object.keys(COMMANDS).filter((name) => !page.includes(`\`ndl ${name}`))).toEqual([]);
    expect(Object.values(EXIT).filter((code) => !new RegExp(`^\\| ${code} \\|`, 'm').test(page))).toEqual([]);
  });
});

describe('ls', () => {
  it('prints a table, and a document with --json', async () => {
    const { owner } = await redis.heldAndWaitedFor();
    await eventually(async () => {
      const { code, stdout, stderr } = await ndl('ls');
      expect(normalised(stdout).split('\n')).toEqual([
        'KEY  KIND  HOLDER  LABEL  HELD FOR  ENDS IN  WAITERS  FIRST WAITS',
        'order:42  mutex  shop@<host>:<pid>  Orders.pay  <time>  <time>  1  <time>',
      ]);
      expect([code, withoutProgress(stderr)]).toEqual([0, '']);
    });
    await eventually(async () => {
      const { total, keys } = await documentOf('ls');
      const holders = [{ owner, app: 'shop', permits: null, report: { label: 'Orders.pay', fencingToken: expect.any(Number) as number } }];
      expect([total, keys[0]]).toMatchObject([1, { key: 'order:42', holders, waiterCount: 1 }]);
      expect(keys[0]?.waiters[0]?.waitingFor).toBeGreaterThanOrEqual(0);
    });
  });

  it('sorts before it cuts, and says that there is more', async () => {
    const shop = redis.service();
    for (const key of ['b', 'c', 'a']) {
      await hold(shop, key);
      // Ages are told in whole milliseconds.
      const before = Date.now();
      await eventually(() => Date.now() > before + 1);
    }
    const { stdout, stderr } = await ndl('ls', '--sort', 'key', '--limit', '1', '--json');
    expect(documentIn(stdout, 'ls')).toMatchObject({ total: 3, keys: [{ key: 'a' }] });
    expect(stderr).toContain('The first 1 of 3 keys');
    const names = async (...args: string[]) => (await documentOf('ls', ...args)).keys.map(({ key }) => key);
    expect(await names('--sort', 'age')).toEqual(['b', 'c', 'a']);
    expect(await names('[ab]')).toEqual([]);
    expect(await names('b*')).toEqual(['b']);
    for (const filter of ['--host=elsewhere', '--older-than=1h', '--waited']) expect(await names(filter)).toEqual([]);
  });

  it('shows no escape sequence or line that another process has sent, and no style where nobody sees it', async () => {
    const label = 'a\u001b[2Jb\nc\u202ed';
    await hold(redis.service(), 'k', label);
    const forged = 'evil\u009b31m@h\u001b[31m\nFORGED:1:00000000-0000-4000-8000-000000000000';
    await redis.server.client().set('other', forged, 'PX', 600_000);
    await redis.server.client().set('{other}:fence', '1', 'PX', 600_000);
    for (const [command, ...args] of [
      ['ls'],
      ['show', 'other'],
      ['release', 'other', '--reason', 'r'],
      ['release', 'other', '--owner', forged, '--reason', 'r'],
    ]) {
      const { stdout, stderr } = await ndlHere([command!, ...args, '--url', redis.url], { env: { FORCE_COLOR: '1' } });
      // eslint-disable-next-line no-control-regex -- these are what is meant
      expect(stdout + stderr).not.toMatch(/[\u001b\u009b\u202e]|^FORGED/m);
      expect(stdout + stderr).toContain('FORGED');
    }
    await eventually(async () => expect((await ndl('ls')).stdout).toContain('b\\u000ac\\u202ed'));
  });

  it('prints keys as they are typed with the same flags', async () => {
    const shop = redis.service({ namespace: 'shop 1:' });
    const keys = ["order's 42", '$(id) *', "a\u202e\\'b", 'plain'];
    for (const key of keys) await hold(shop, key);
    const flags = ['--namespace', 'shop 1:'];
    const lines = (await ndl('ls', '--sort', 'key', ...flags)).stdout.split('\n').slice(1, 5);
    expect(lines.map((line) => /^(.*?) {2}/.exec(line)![1])).toEqual([`'$(id) *'`, `$'a\\u202e\\\\\\'b'`, `'order'\\''s 42'`, 'plain']);
    for (const key of keys) {
      const { code, stdout } = await ndl('show', key, ...flags);
      expect([code, stdout.split('\n')[0]]).toEqual([0, `key      ${shellQuoted(key)}`]);
    }
  });

  it('cuts a long key in its middle, but not with --wide', async () => {
    const key = `start${'x'.repeat(80)}end`;
    await hold(redis.service(), key);
    expect((await ndl('ls')).stdout).toMatch(/^startx+…x+end /m);
    expect((await ndl('ls', '--wide')).stdout).toContain(key);
  });

  it('prints its progress on stderr, once it has found a key', async () => {
    const { setInterval: start } = globalThis;
    const everyMillisecond = (callback: () => void) => start(callback, 1);
    const timers = jest.spyOn(globalThis, 'setInterval').mockImplementation(everyMillisecond);
    try {
      const fill = `for i = 1, 3000 do redis.call('SET', 'k' .. i, ARGV[1], 'PX', 600000) redis.call('SET', '{k' .. i .. '}:fence', i) end`;
      await redis.server.client().eval(fill, 0, SOMEONE);
      const { code, stdout, stderr } = await ndl('ls', '--json');
      expect([code, documentIn(stdout, 'ls').total]).toEqual([0, 3000]);
      expect(stderr).toMatch(/^([1-9]\d* keys so far …\n)+/);

      const dead = await ndlHere(['ls', '--url', `redis://127.0.0.1:${await freePort()}`, '--timeout', '300ms']);
      expect([dead.code, dead.stderr]).toEqual([3, expect.stringMatching(/^.*Redis is not connected.*\n$/)]);
      expect(timers).toHaveBeenCalled();
    } finally {
      timers.mockRestore();
    }
  });

  it('finds a key whose namespace is left out, and says what was searched and what there is where nothing is found', async () => {
    await hold(redis.service(), 'shop:order-43-locks');
    const found = await ndl('ls', 'order*');
    expect([found.code, found.stdout]).toEqual([0, expect.stringMatching(/^KEY.*\nshop:order-43-locks /)]);
    expect(found.stderr).toBe('No key like order* is held. Like *order*:\n');
    expect((await documentOf('ls', 'order*')).total).toBe(0);
    const there = 'In use: shop:order-43-locks.\n';
    expect((await ndl('ls', 'stock*')).stdout).toBe(`No key like stock* is held. ${there}`);
    expect((await ndl('ls', '--older-than', '1d')).stdout).toBe(`No key older than 24 h is held. ${there}`);
    expect((await ndl('ls', '--host', 'nowhere')).stdout).toBe(`No key of the host nowhere is held. ${there}`);
    expect((await ndl('ls', '--namespace', 'app:')).stdout).toBe('No key is held in the namespace app:.\n');
    const shown = await ndl('show', 'order-43');
    expect([shown.code, shown.stdout.split('\n').at(-2)]).toEqual([4, 'In use: shop:order-43-locks.']);
    expect((await ndl('release', 'order-43', '--yes')).stderr).toMatch(/^Nobody holds "order-43". In use: shop:order-43-locks\.$/m);
  });
});

describe('show', () => {
  it('prints all of a key, and the line that would free it', async () => {
    const { owner } = await redis.heldAndWaitedFor();
    await eventually(async () =>
      expect(await linesOf('show', 'order:42')).toEqual([
        'key  order:42',
        'kind  mutex',
        'token  <token>, the last one that was given',
        'holder  shop@<host>:<pid>  Orders.pay, held for <time>, ends in <time>',
        'waiters  1, the first for <time>',
        '  1  shop@<host>:<pid>  Orders.cancel, <time>',
        '',
        'To take it away from shop@<host>:<pid>:',
        expect.stringMatching(/^ {2}ndl release order:42 --owner shop@<host>:<pid>:<uuid> --reason '…' --url …$/),
      ]),
    );
    const { code, stdout } = await ndl('show', 'order:42');
    expect([code, stdout]).toEqual([0, expect.stringContaining(owner)]);
    expect((await documentOf('show', 'order:42')).key.holders[0]?.owner).toBe(owner);
  });

  it('prints who has handed a key over, and until when it can be adopted', async () => {
    const lease = await redis.service().acquire('order:42', { label: 'Orders.place' });
    const ticket = await lease.handOver({ within: 60_000 });
    const by = /^holder {3}handed over by shop@\S+, Orders\.place, until (\S+), not adopted yet, ends in \d+/m;
    await eventually(async () => {
      const [, until = ''] = by.exec((await ndl('show', 'order:42')).stdout) ?? [];
      expect(Date.parse(until)).toBeGreaterThan(Date.now());
    });
    await redis.service({ app: 'worker' }).adopt(ticket);
    await eventually(async () => expect((await ndl('show', 'order:42')).stdout).toMatch(/^holder {3}worker@/m));
  });

  it('says why the process of a holder, which ls marks, may not have been asked, until its lease was renewed', async () => {
    const service = redis.service({}, false);
    await hold(service, 'young', 'Orders.pay');
    expect((await ndl('show', 'young')).stdout).toMatch(
      /^holder .*, no answer from its process: blocked, or it has not renewed a lease yet$/m,
    );
    await redis.service().acquire('told');
    const listed = normalised((await ndl('ls')).stdout);
    expect(listed).toMatch(/^young {2}mutex {2}shop@<host>:<pid> \(silent\)/m);
    expect(listed).toMatch(/^told {2}mutex {2}shop@<host>:<pid> {2}–/m);
    await service.acquire('old', { label: 'Orders.pay', keyTimeout: 5_000 });
    await eventually(async () => expect((await ndl('show', 'old')).stdout).toMatch(/^holder .* {2}Orders.pay, (?!.*no answer)/m));
  });

  it('says that a key is free by exit code 4', async () => {
    expect(await ndl('show', 'free')).toMatchObject({
      code: 4,
      stdout: 'key      free\nkind     free\nNobody holds it.\nNothing like *free* was found in use.\n',
    });
    expect((await documentOf('show', 'free')).key.kind).toBe('free');
  });

  it('has the prefix of ioredis with --key-prefix', async () => {
    await redis.server.client().set('pre:k', SOMEONE, 'PX', 600_000);
    expect((await ndl('show', 'k', '--key-prefix', 'pre:')).stdout).toContain('holder   someone@host:1');
  });
});

describe('watch', () => {
  it('prints what has happened and what happens, a document in each line, until Ctrl-C', async () => {
    const shop = redis.service();
    const held = await hold(shop, 'k1', 'Work');
    await hold(shop, 'k2');
    const fail = (key: string) => shop.acquire(key, { waitTimeout: 20, label: 'Other' }).catch(() => undefined);
    await fail('k1');
    const text = startHere(['watch', '--url', redis.url]);
    const json = startHere(['watch', 'k*', '--json', '--url', redis.url]);
    await Promise.all([text.says(/timed out/), json.says(/timeout/)]);
    await shop.forceRelease('k1', { reason: 'it hangs', by: 'anna', grace: 0 });
    expect(held.signal.aborted).toBe(true);
    await fail('k2');
    await Promise.all([text.says(/k2/), json.says(/k2/)]);
    for (const each of [text, json]) each.signal('SIGINT');
    const [lines, documents] = [await text.ended, await json.ended];
    expect([lines.code, documents.code]).toEqual([0, 0]);
    const process = 'of shop@<host>:<pid>';
    expect(normalised(lines.stdout).trimEnd().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`k1  timed out after <time>  Other ${process}$`)),
      expect.stringMatching(new RegExp(`k1  FORCED by anna: it hangs  Work ${process}$`)),
      expect.stringMatching(new RegExp(`k2  timed out after <time>  Other ${process}$`)),
    ]);
    const events = documents.stdout.trimEnd().split('\n').map((line) => documentIn(line, 'watch').event); // prettier-ignore
    expect(events).toEqual(['timeout', 'forced', 'timeout']);
  });

  it('prints an event that it does not know, and goes on', async () => {
    const news = (event: string, number: number) => {
      const events = [{ event, number, at: 0, firstAt: 0, count: 1, key: 'k' }];
      const message = { version: 1, process: 'new@host:1', from: 'new', after: number - 1, events };
      return redis.server.client().publish(OPS_TOLD, JSON.stringify(message));
    };
    const program = startHere(['watch', '--url', redis.url]);
    for (const [index, event] of ['renamed', 'toString'].entries()) {
      await eventually(async () => {
        await news(event, index + 1);
        expect(program.stdout()).toMatch(new RegExp(`^1970-01-01 00:00:00\\.000 {2}k {2}${event} {2}new@host:1$`, 'm'));
      });
    }
    program.signal('SIGINT');
    expect((await program.ended).code).toBe(0);
  });
});

describe('graph', () => {
  it('prints the waiters with their holders', async () => {
    expect((await ndl('graph')).stdout).toBe('Nobody waits.\n');
    await redis.heldAndWaitedFor();
    const [waiter, holder] = ['Orders.cancel of shop@<host>:<pid>', 'Orders.pay of shop@<host>:<pid>'];
    await eventually(async () => {
      expect(await linesOf('graph')).toEqual(['WAITS  FOR  HELD BY', `${waiter}  order:42  ${holder}`]);
    });
  });

  it('finds a deadlock: exit code 6', async () => {
    let inside = 0;
    const nest = (outer: string, inner: string): Promise<void> => {
      const shop = redis.service();
      const patient = { waitTimeout: Infinity, keyTimeout: 60_000, label: outer };
      return shop.using(
        outer,
        async () => {
          inside++;
          await eventually(() => inside === 2);
          await shop.using(inner, async () => undefined, patient);
        },
        patient,
      );
    };
    for (const deadlocked of [nest('a', 'b'), nest('b', 'a')]) deadlocked.catch(() => undefined);
    await eventually(async () => expect(await redis.server.client().exists('{a}:queue', '{b}:queue')).toBe(2));
    await eventually(async () => {
      const { stdout, code } = await ndl('graph', '--json');
      const { deadlocks, edges } = documentIn(stdout, 'graph');
      expect([code, deadlocks.length, edges.length]).toEqual([6, 1, 2]);
    });
    await eventually(async () => expect((await ndl('graph')).stdout).toMatch(/^deadlock {2}.*holds [ab] and waits for [ab]/m));
    await eventually(async () => expect((await ndl('show', 'a')).stdout).toMatch(/^deadlock {2}/m));
  });
});

it('leader ends a term, and says how to see who leads', async () => {
  expect(await ndl('leader', 'cleaner')).toMatchObject({ code: 2, stderr: expect.stringContaining('ndl show cleaner-leader') });
  const { owner } = await hold(redis.service(), 'cleaner-leader');
  const deposed = await ndl('leader', 'cleaner', '--depose', '--reason', 'test', '--yes', '--json');
  expect(documentIn(deposed.stdout, 'release')).toMatchObject({ outcome: 'gave back', holder: owner });
});
