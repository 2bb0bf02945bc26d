// `ndl release`: it takes the key from the owner that was named, or it does nothing.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { EXIT } from '../../lib/cli/failure.js';
import { ndlHere, useCli, type CliResult } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { documentIn, errorIn, hold, useRedis } from './setting.js';

const redis = useRedis();
const cli = useCli();
const release = (key: string, ...args: string[]): Promise<CliResult> => ndlHere(['release', key, '--url', redis.url, ...args]);

it('4: nobody holds it; 2: no owner, no reason, nobody to ask; 5: another owner, another token; 0: released', async () => {
  const on = (...args: string[]) => release('order:42', ...args);
  const refuses = (args: string[], code: number, text: RegExp) =>
    eventually(async () => expect(await on(...args)).toMatchObject({ code, stderr: expect.stringMatching(text) }));
  await refuses(['--owner', 'o', '--reason', 'r', '--yes'], 4, /Nobody holds "order:42"/);
  const lease = await hold(redis.service(), 'order:42', 'Orders.pay');
  const { owner } = lease;
  await refuses(['--reason', 'r', '--yes'], 2, new RegExp(`is held by ${owner}.*Orders.pay.*--owner`));
  await refuses(['--owner', owner, '--yes'], 2, /Give a --reason/);
  await refuses(['--owner', owner, '--reason', 'r'], 2, /add --yes/);
  await refuses(['--owner', `${owner}x`, '--reason', 'r', '--yes'], 5, /is held by .*, and not by/);
  const other = await on('--owner', owner, '--token', String(lease.fencingToken! - 1), '--reason', 'r', '--yes', '--json');
  expect([other.code, documentIn(other.stdout, 'release').outcome]).toEqual([5, 'changed']);
  expect(errorIn(other.stderr).code).toBe('CHANGED');
  expect(lease.signal.aborted).toBe(false);
  const { code, stdout, stderr } = await on('--owner', owner, '--token', String(lease.fencingToken), '--reason', 'stuck', '--yes');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^before {2}held by .* \((Orders.pay|–)\) for .*; 0 wait\nreleased: free\n$/);
  expect(lease.signal.reason).toMatchObject({ message: expect.stringContaining('stuck') });
});

it('takes from the 101st holder of a semaphore', async () => {
  const locks = redis.service();
  const pool = locks.semaphore('pool', { permits: 101 });
  const leases = await Promise.all(Array.from({ length: 101 }, () => pool.acquire({ keyTimeout: 60_000 })));
  const { holders } = await locks.inspect('pool');
  const { owner } = leases.find((lease) => holders.every((holder) => holder.owner !== lease.owner))!;
  const ends = async (named: string) => (await release('pool', '--owner', named, '--reason', 'r', '--now', '--yes')).code;
  expect([await ends(`${owner}x`), await ends(owner), await ends(owner)]).toEqual([EXIT.changed, EXIT.ok, EXIT.changed]);
});

it('says why it leaves a latch alone, and a value that no lock has written', async () => {
  await redis.service().countDownLatch('latch').trySetCount(1);
  await redis.server.client().set('foreign', 'x');
  expect(await release('latch')).toMatchObject({ code: EXIT.store, stderr: expect.stringContaining('count it down') });
  expect(await release('foreign')).toMatchObject({ code: EXIT.usage, stderr: expect.stringContaining('left alone') });
});

/** The exit code and the stderr of a command, whose stdout is what the script makes of it. */
const ends = (script: string, ...args: string[]): [number | null, string] => {
  const command = [process.execPath, join(cli.folder(), 'cli/main.js'), ...args, '--url', redis.url];
  const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', ...command], { encoding: 'utf8' });
  return [status, stderr.replace(/^.*NDL_TAKEN]\n/, '')];
};
it.each([
  ['nobody reads it', '{ "$@"; echo "code $?" >&2; } | true', [0, 'code 0\n']],
  ['it fails', '"$@" 1</dev/null', [EXIT.fault, expect.stringMatching(/^The output could not be written: EBADF.*\n$/)]],
])(
  'an output that cannot be written ends a command that only looks, and keeps no release from its work: %s',
  async (_, script, expected) => {
    const { owner } = await redis.service({}, false).acquire('k', { keyTimeout: 60_000 });
    expect(ends(script, 'ls', '--json')).toEqual(expected);
    expect(ends(script, 'release', 'k', '--owner', owner, '--reason', 'r', '--now', '--yes')).toEqual(expected);
    expect((await redis.service().inspect('k')).kind).toBe('free');
  },
);

it('takes by force a key that is not released, and keeps it', async () => {
  const { owner } = await redis.service().acquire('k', { keyTimeout: 60_000 });
  const { stdout, code } = await release('k', '--owner', owner, '--reason', 'r', '--yes', '--grace', '300ms', '--keep', '10m', '--json');
  const { outcome, after } = documentIn(stdout, 'release');
  expect([code, outcome, after.holders[0]?.phase]).toEqual([0, 'forced', 'kept']);
});
