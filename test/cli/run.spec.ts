// A command under a lock: real wrappers, real commands, a real Redis.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { useCli, type RunningCli } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { random } from '../support/random.js';
import { startRedis } from '../support/redis-server.js';
import { pause } from '../support/time.js';
import { documentIn, useRedis } from './setting.js';

jest.setTimeout(120_000);

/** Of wrappers in the last test. */
const KILLS = Number(process.env.TEST_KILLS ?? 40);
const LANES = 3;

const redis = useRedis();
const { ndl, start } = useCli();
let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'ndl-run-'))));
afterEach(() => rmSync(folder, { recursive: true }));
const inside = resolve('test/cli/inside.sh');
const textOf = (name: string): string => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim() : '');
const on = (...args: string[]): string[] => ['run', 'k', '--url', redis.url, ...args];
const sh = (script: string, ...args: string[]): string[] => ['--', 'sh', '-c', script, 'sh', ...args];

/** Processes with this text in their command line. */
function processesWith(text: string): string[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,stat=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(text) && !/^\s*\d+ Z/.test(line) && !line.includes(' ps -A'));
}

it('no two commands at once, of wrappers that start at the same time', async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => inTurn(3)));
  expect(all.flat().map(({ code, stderr }) => [code, stderr])).toEqual(Array(12).fill([0, '']));
  expect([textOf('count'), textOf('overlaps')]).toEqual(['12', '']);
});

async function inTurn(times: number) {
  const results = [];
  for (let i = 0; i < times; i++) results.push(await ndl(on('--', 'sh', inside, folder, '0.05')));
  return results;
}

describe('the exit code', () => {
  it.each([
    ['of the command', 7, sh('exit 7')],
    ['128 + n after a signal', 137, sh('kill -KILL $$')],
    ['of a command that is not there', 127, ['--', 'no-such-command']],
  ])('%s', async (_, code, args) => {
    expect((await ndl(on(...args))).code).toBe(code);
    expect(await redis.server.client().exists('k')).toBe(0);
  });

  it('75, or what is wanted, if the lock is not to be had', async () => {
    const holder = start(on('--', 'sh', inside, folder, '30'));
    await eventually(() => textOf('pids') !== '', { within: 20_000 });
    const [one, other] = await Promise.all([
      ndl(on('--wait', '0', ...sh('echo ran'))),
      ndl(on('--wait', '300ms', '--conflict-exit-code', '0', ...sh('echo ran'))),
    ]);
    expect(one).toEqual({ code: 75, stdout: '', stderr: expect.stringContaining('"k"') });
    expect(other).toMatchObject({ code: 0, stdout: '' });
    holder.signal('SIGTERM');
    expect((await holder.ended).code).toBe(143);
  });

  it('is that of the command if the store is gone at its end', async () => {
    const server = await startRedis({ port: 'free' });
    const program = start([
      'run',
      'k',
      '--url',
      `redis://127.0.0.1:${server.port}`,
      '--timeout',
      '300ms',
      ...sh('echo runs; while ! [ -e "$1/go" ]; do sleep 0.1; done; exit 9', folder),
    ]);
    await program.says(/runs/);
    await server.stop();
    execFileSync('touch', [join(folder, 'go')]);
    expect((await program.ended).code).toBe(9);
  });
});

it('its arguments are not read by a shell; it knows the key, the owner and the token', async () => {
  const { stdout } = await ndl(on('--', 'printf', '%s|', '$HOME; ls', '--json', 'a b'));
  expect(stdout).toBe('$HOME; ls|--json|a b|');
  const env = await ndl(on(...sh('echo $LOCK_KEY $LOCK_OWNER $LOCK_FENCING_TOKEN')));
  expect(env.stdout).toMatch(/^k ndl@\S+:\d+:[\w-]{36} \d{16}\n$/);
});

describe('signals', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const)('%s is passed on', async (signal) => {
    const name = signal.slice(3);
    const program = start(on(...sh(`trap 'echo got ${name}; exit 9' ${name}; echo runs; while :; do sleep 0.05; done`)));
    await program.says(/runs/);
    program.signal(signal);
    expect(await program.ended).toMatchObject({ code: 9, stdout: `runs\ngot ${name}\n` });
  });

  it('end it while it waits: 128 + n, and it does not stand in the queue', async () => {
    const locks = new Locks(redisStore({ url: redis.url }), { logger: false });
    await using _ = await locks.acquire('k');
    const program = start(on(...sh('echo ran')));
    await eventually(async () => expect(await redis.server.client().zcard('{k}:queue')).toBe(1), { within: 20_000 });
    program.signal('SIGTERM');
    expect(await program.ended).toMatchObject({ code: 143, stdout: '' });
    expect(await redis.server.client().zcard('{k}:queue')).toBe(0);
    await _.release();
    await locks.close();
  });

  it('the lock is held until all of the group have ended', async () => {
    // The command ends at once, and what it has started half a second later.
    const script = `(trap 'sleep 0.5; echo end >>"$1/log"; exit' TERM; echo runs; while :; do sleep 0.05; done) & wait`;
    const program = start(on('--grace', '5s', ...sh(script, folder)));
    await program.says(/runs/);
    program.signal('SIGTERM');
    const next = await ndl(on(...sh('cat "$1/log"', folder)));
    expect([next.stdout, (await program.ended).code]).toEqual(['end\n', 143]);
  });
});

it('what the command leaves in its group is ended, also what ignores SIGTERM', async () => {
  const { code } = await ndl(
    on(
      '--grace',
      '300ms',
      ...sh(`sh "$1" "$2" 30 stubborn >/dev/null 2>&1 & while ! [ -s "$2/pids" ]; do sleep 0.05; done; exit 3`, inside, folder),
    ),
  );
  expect([code, processesWith(folder)]).toEqual([3, []]);
});

describe('a lost lease', () => {
  const forced = async (program: RunningCli, ...args: string[]) => {
    await eventually(() => textOf('pids') !== '', { within: 20_000 });
    const { key } = documentIn((await ndl(['show', 'k', '--url', redis.url, '--json'])).stdout, 'show');
    const release = ['release', 'k', '--owner', key.holders[0].owner, '--reason', 'test', '--yes', '--json', '--url', redis.url];
    const { stdout } = await ndl([...release, ...args]);
    return { ...documentIn(stdout, 'release'), ...(await program.ended) };
  };

  it('asked back by another process: SIGTERM at once, 76, and nobody else gets in before it has ended', async () => {
    const program = start(on('--', 'sh', inside, folder, '30'));
    const next = eventually(() => textOf('pids') !== '', { within: 20_000 }).then(() => ndl(on('--', 'sh', inside, folder, '0')));
    const reply = await forced(program);
    expect(reply).toMatchObject({ code: 76, outcome: 'gave back', stderr: expect.stringContaining('The command is ended: ') });
    expect([(await next).code, textOf('overlaps')]).toEqual([0, '']);
  });

  it('a command that ignores SIGTERM is killed after the grace', async () => {
    const program = start(on('--grace', '500ms', '--', 'sh', inside, folder, '30', 'stubborn'));
    const next = eventually(() => textOf('pids') !== '', { within: 20_000 }).then(() => ndl(on('--', 'sh', inside, folder, '0')));
    expect(await forced(program, '--grace', '10s')).toMatchObject({ code: 76, outcome: 'gave back' });
    expect([(await next).code, textOf('overlaps'), processesWith(folder)]).toEqual([0, '', []]);
  });

  it('taken at once by another process: the command is ended within a renewal', async () => {
    const program = start(on('--key-timeout', '3s', '--grace', '300ms', '--', 'sh', inside, folder, '30'));
    expect(await forced(program, '--now', '--keep', '5s')).toMatchObject({ code: 76, outcome: 'forced' });
    expect(processesWith(folder)).toEqual([]);
  });

  it('a store that is gone: the command has ended before its lease has', async () => {
    const server = await startRedis({ port: 'free' });
    const args = ['run', 'k', '--url', `redis://127.0.0.1:${server.port}`, '--timeout', '300ms', '--key-timeout', '6s', '--grace', '2s'];
    const program = start([...args, '--', 'sh', inside, folder, '30', 'stubborn']);
    await eventually(() => textOf('pids') !== '', { within: 20_000 });
    await server.pause();
    const begun = performance.now();
    await eventually(() => expect(processesWith(folder).filter((line) => !line.includes('main.js'))).toEqual([]), { within: 6_000 });
    expect(performance.now() - begun).toBeLessThan(6_000);
    const { code, stderr } = await program.ended;
    expect([code, stderr]).toEqual([76, expect.stringContaining('could not be renewed, and ends in 2 s')]);
    await server.stop();
  });

  it('--max-hold ends it, too', async () => {
    const program = start(on('--max-hold', '1s', '--', 'sh', inside, folder, '30'));
    expect(await program.ended).toMatchObject({ code: 76, stderr: expect.stringContaining('maxHold') });
  });
});

it(
  'a wrapper that is killed at any moment leaves no command behind',
  async () => {
    const lane = async (number: number): Promise<void> => {
      for (let i = 0; i < KILLS / LANES; i++) {
        const stubborn = random() < 0.5 ? ['stubborn'] : [];
        const args = ['run', `lane-${number}`, '--url', redis.url, '--key-timeout', '1s', '--grace', '300ms'];
        const known = textOf(`${number}/pids`);
        const program = start([...args, '--', 'sh', inside, join(folder, String(number)), '30', ...stubborn]);
        // Half of them near the start of the command, where the steps are close together.
        if (random() < 0.5) await eventually(() => textOf(`${number}/pids`) !== known, { within: 30_000, every: 1 });
        else await pause(300 + random() * 1_500);
        await pause(random() * 100);
        program.signal('SIGKILL');
        await program.ended;
      }
    };
    for (let i = 0; i < LANES; i++) execFileSync('mkdir', [join(folder, String(i))]);
    await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
    await eventually(() => expect(processesWith(folder)).toEqual([]), { within: 3_000 });
    expect(Array.from({ length: LANES }, (_, number) => textOf(`${number}/overlaps`)).join('')).toBe('');
    const begun = Array.from({ length: LANES }, (_, number) => textOf(`${number}/pids`).split('\n').length).reduce((a, b) => a + b);
    expect(begun).toBeGreaterThan(KILLS / 4);
  },
  KILLS * 5_000,
);
