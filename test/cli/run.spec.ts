// A command under a lock: real wrappers, real commands, a real Redis.
import { ndlHere } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { documentIn, hold } from './setting.js';
import { inside, sh, useWrappers } from './wrappers.js';

const { redis, ndl, start, on, folderOf, textOf, begins, commands } = useWrappers();

const isQueued = () => eventually(async () => expect(await redis.server.client().zcard('{k}:queue')).toBe(1));

it('several that start at the same time run one command at a time', async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => ndl(on('--', 'sh', inside, folderOf(), '0.05'))));
  expect(all.map(({ code, stderr }) => [code, stderr])).toEqual(Array(4).fill([0, '']));
  expect([textOf('count'), textOf('overlaps')]).toEqual(['4', '']);
});

describe('the exit code', () => {
  it.each([
    ['of the command', 7, sh('exit 7')],
    ['128 + n after a signal', 137, sh('kill -KILL $$')],
    ['of a command that is not there', 127, ['--', 'no-such-command']],
  ])('%s', async (_, code, args) => {
    // Of a folder of the PATH that may not be read, nobody knows what is in it.
    expect((await ndl(on(...args), { env: { PATH: '/usr/bin:/bin' } })).code).toBe(code);
    expect(await redis.server.client().exists('k')).toBe(0);
  });

  it('the exit code is 75, or the chosen one, if the lock is taken', async () => {
    await hold(redis.service(), 'k');
    const [one, other] = await Promise.all([
      ndl(on('--wait', '0', ...sh('echo ran'))),
      ndl(on('--wait', '300ms', '--conflict-exit-code', '0', ...sh('echo ran'))),
    ]);
    expect(one).toEqual({ code: 75, stdout: '', stderr: expect.stringContaining('"k"') });
    expect(other).toMatchObject({ code: 0, stdout: '' });
  });
});

it('its arguments are not read by a shell; it knows the key, the owner and the token', async () => {
  const { stdout } = await ndl(on('--', 'printf', '%s|', '$HOME; ls', '--json', 'a b'));
  expect(stdout).toBe('$HOME; ls|--json|a b|');
  const env = await ndl(on(...sh('echo $LOCK_KEY $LOCK_OWNER $LOCK_FENCING_TOKEN')));
  expect(env.stdout).toMatch(/^k ndl@\S+:\d+:[\w-]{36} \d{16}\n$/);
});

describe('signals', () => {
  it('are passed on', async () => {
    const names = ['INT', 'HUP', 'QUIT', 'TERM'];
    const traps = names.map((name) => `trap 'echo got ${name}; last=${name}' ${name};`).join(' ');
    const program = start(on(...sh(`${traps} echo runs; while [ "$last" != TERM ]; do sleep 0.05; done; exit 9`)));
    await program.says(/runs/);
    for (const name of names) {
      program.signal(`SIG${name}` as NodeJS.Signals);
      await program.says(new RegExp(`got ${name}\n`));
    }
    expect((await program.ended).code).toBe(9);
  });

  it('end it while it waits: 128 + n, and it does not stand in the queue', async () => {
    await hold(redis.service(), 'k');
    const program = start(on(...sh('echo ran')));
    await isQueued();
    program.signal('SIGTERM');
    expect(await program.ended).toMatchObject({ code: 143, stdout: '' });
    expect(await redis.server.client().zcard('{k}:queue')).toBe(0);
  });

  it('the lock is held until all of the group have ended', async () => {
    // The command ends at once, and what it has started a second later.
    const script = `(trap 'sleep 1; echo end >>"$1/log"; exit' TERM; echo runs; while :; do sleep 0.05; done) & wait`;
    const program = start(on('--key-timeout', '10m', '--grace', '5m', ...sh(script, folderOf())));
    await program.says(/runs/);
    const next = ndl(on(...sh('cat "$1/log"', folderOf())));
    await isQueued();
    program.signal('SIGTERM');
    expect([(await next).stdout, (await program.ended).code]).toEqual(['end\n', 143]);
  });
});

it('what the command leaves in its group is ended, also what ignores SIGTERM', async () => {
  const script = `sh "$1" "$2" 30 stubborn >/dev/null 2>&1 & while ! [ -s "$2/pids" ]; do sleep 0.05; done; exit 3`;
  const { code } = await ndl(on('--grace', '300ms', ...sh(script, inside, folderOf())));
  expect([code, commands()]).toEqual([3, []]);
});

describe('a lost lease', () => {
  it.each([
    ['asked back by another process: SIGTERM at once, 76, and nobody else gets in before it has ended', [], []],
    ['a command that ignores SIGTERM is killed after the grace', ['--grace', '500ms'], ['stubborn']],
  ])('%s', async (_, options, ways) => {
    const program = start(on('--key-timeout', '5s', ...options, '--', 'sh', inside, folderOf(), '600', ...ways));
    await begins();
    const next = ndl(on('--', 'sh', inside, folderOf(), '0'));
    // It answers once its lease was renewed.
    const owner = await eventually(async () => {
      const { stdout } = await ndlHere(['show', 'k', '--url', redis.url, '--json']);
      const [holder] = documentIn(stdout, 'show').key.holders;
      expect(holder?.report?.label).toBe('ndl run sh');
      return holder?.owner as string;
    });
    const release = ['release', 'k', '--owner', owner, '--reason', 'test', '--yes', '--json', '--grace', '10m', '--url', redis.url];
    expect(documentIn((await ndlHere(release)).stdout, 'release').outcome).toBe('gave back');
    expect(await program.ended).toMatchObject({ code: 76, stderr: expect.stringContaining('The command is ended: ') });
    expect([(await next).code, textOf('overlaps'), commands()]).toEqual([0, '', []]);
  });

  it('--max-hold ends it, too', async () => {
    const program = start(on('--max-hold', '1s', '--', 'sh', inside, folderOf(), '600'));
    expect(await program.ended).toMatchObject({ code: 76, stderr: expect.stringContaining('maxHold') });
  });
});

it('a wrapper that is killed leaves no command behind, nor one that ignores SIGTERM', async () => {
  const program = start(on('--grace', '300ms', '--', 'sh', inside, folderOf(), '600', 'stubborn'));
  await begins();
  program.signal('SIGKILL');
  await program.ended;
  await eventually(() => expect(commands()).toEqual([]));
});
