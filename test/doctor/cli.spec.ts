// `ndl doctor` as a process, on a real Redis.
import { execFile } from 'node:child_process';
import { read } from '../support/markdown.js';
import { useRedis } from '../stores/redis/setting.js';
import { documentIn } from '../cli/setting.js';

const setting = useRedis({ port: 'free' });

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function ndl(...args: string[]): Promise<Ended> {
  const words = ['--import', 'tsx', 'lib/cli/main.ts', 'doctor', ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, words, (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }));
  });
}
const url = (): string => `redis://127.0.0.1:${setting.server.port}`;
/** Numbers differ from run to run, and so do the signs of small ones; a busy machine answers slowly. */
const shape = (text: string): string =>
  text
    .replaceAll(/\d+([.,]\d+)*( k?ms| m?s)?/g, 'N')
    .replace(/N (fast|slow) in/, 'N off in')
    .replace('behind this', 'ahead of this')
    .replace(/^warn( +round-trips .*)\n.*$/m, 'ok  $1')
    .trimEnd();

it('prints what the docs show, and exits with 0', async () => {
  const { code, out, err } = await ndl('--url', url());
  const [, shown = ''] = /\$ npx ndl doctor[^\n]*\n(.*?)```/s.exec(read('docs/doctor.md')) ?? [];
  expect([shape(out), err, code]).toEqual([shape(shown), '', 0]);
});

it('exits with 6 for a warning with --strict, and for what is bad', async () => {
  const strict = await ndl('--url', url(), '--strict', '--probe', '100ms', '--json');
  expect([strict.code, strict.err]).toEqual([6, '']);
  documentIn(strict.out, 'doctor');
  await setting.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const { code, out } = await ndl('--url', url(), '--probe', '100ms');
  await setting.redis.config('SET', 'maxmemory-policy', 'noeviction');
  expect(code).toBe(6);
  expect(out).toMatch(/^bad {6}eviction {9} allkeys-lru\n {27}G2: CONFIG SET maxmemory-policy noeviction/m);
  expect(out.trimEnd().split('\n').at(-1)).toMatch(/^Efficiency: no, because .*\(eviction\)\. Correctness: no\.$/);
});

it('prints users with --acl, and writes nothing with --no-probe', async () => {
  const { out, code } = await ndl('--url', url(), '--no-probe', '--acl', '--namespace', 'shop:');
  expect(code).toBe(0);
  expect(out).toContain('\nuser locks on >secret ~shop:* ~{shop:* &nestjs-distributed-lock:* +eval');
  expect(out).not.toContain('probe');
  expect(await setting.keys()).toEqual([]);
});

it('exits with 3 without a server, and 2 for a wrong option', async () => {
  const away = await ndl('--url', 'redis://127.0.0.1:1', '--timeout', '300ms', '--json');
  expect(away.code).toBe(3);
  expect(JSON.parse(away.err.trim().split('\n').at(-1)!)).toMatchObject({ error: { code: 'LOCK_STORE' } });
  expect(await ndl('--probe', '0')).toMatchObject({ code: 2, err: expect.stringContaining('--no-probe') as string });
});
