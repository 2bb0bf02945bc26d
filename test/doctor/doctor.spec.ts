// The doctor of stores that have no server, and what `ndl doctor` prints of one that has.
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks, type LeaseDriver, type LockStore } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { recordStore } from 'nestjs-distributed-lock/records';
import type { WakeUps } from '../../lib/core/store/lease-driver.js';
import { fileChecks } from '../../lib/stores/file/operate/file.doctor.js';
import { documentIn, errorIn } from '../cli/setting.js';
import { useRedis } from '../stores/redis/setting.js';
import { ndlHere } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { MapTable } from '../support/map-table.js';
import { read } from '../support/markdown.js';
import { examined, startLines } from './examined.js';

describe('the doctor of', () => {
  let folder: string;
  beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'doctor-'))));
  afterAll(() => rm(folder, { recursive: true }));

  it('files tries a lock, and looks at the file system', async () => {
    const { notOk, checks, verdict } = await examined(fileStore({ directory: folder }));
    expect(notOk).toEqual([]);
    expect(checks.map(({ id }) => id)).toEqual(['location', 'file-system', 'path', 'probe', 'wake-ups']);
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
  });

  it('files says at the start of an app which directory it is', async () => {
    const [line] = await startLines(fileStore({ directory: folder }), 'shop:');
    expect(line).toContain(`File in ${folder}, namespace "shop:", answers in `);
  });

  it('files on a remote file system says that other hosts are not excluded', async () => {
    const store: LockStore = {
      ...fileStore({ directory: folder }),
      doctor: { checks: () => fileChecks(folder, folder, async () => 'NFS') },
    };
    const { of, verdict } = await examined(store);
    expect(of('file-system')).toMatchObject({ state: 'bad', seen: 'NFS' });
    expect(verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  });

  it('a store listens until the key is passed on: several wake-ups may come, and nobody may take the later ones for late offers', async () => {
    const steps: string[] = [];
    const memory = memoryStore();
    const inbox = memory.mutex.wakeUps!;
    const wakeUps: WakeUps = {
      isOpen: true,
      open: async () => undefined,
      listen: (owner, wake) => {
        const stop = inbox.listen(owner, wake);
        return () => (steps.push('stop'), stop());
      },
    };
    const { mutex } = memory;
    const acquire: LeaseDriver['acquire'] = (request) => (steps.push('acquire'), mutex.acquire(request));
    const asked = { acquire, wakeUps, renew: mutex.renew.bind(mutex), release: mutex.release.bind(mutex) };
    const rest = { queueEntryLifetime: mutex.queueEntryLifetime, leave: mutex.leave.bind(mutex), check: mutex.check.bind(mutex) };
    expect((await examined({ ...memory, mutex: { ...asked, ...rest } })).of('probe').state).toBe('ok');
    expect(steps).toEqual(['acquire', 'acquire', 'acquire', 'stop']);
  });

  it('files that are not there makes none without a probe', async () => {
    const { notOk } = await examined(fileStore({ directory: join(folder, 'a/b') }), { probe: false });
    expect(notOk).toEqual([]);
    expect(await readdir(folder)).not.toContain('a');
  });

  it('a directory that cannot be', async () => {
    const file = join(folder, 'file');
    await writeFile(file, '');
    await expect(examined(fileStore({ directory: join(file, 'locks') }))).rejects.toThrow('ENOTDIR');
  });

  it('memory says at the start of an app that its locks are of this process only, and in production that this is hardly meant', async () => {
    const line = expect.stringMatching(/^Memory with locks of this process only answers in \d+ ms; waiters are woken$/) as string;
    expect(await startLines(memoryStore())).toEqual([line]);
    const { notOk, of } = await examined(memoryStore());
    expect([notOk, of('scope').seen]).toEqual([[], expect.stringContaining('this process only')]);
    const { NODE_ENV } = process.env;
    process.env.NODE_ENV = 'production';
    try {
      expect(await startLines(memoryStore())).toEqual([line, expect.stringMatching(/this process only.* \[NDL_ONE_PROCESS\]$/)]);
      expect((await examined(memoryStore())).notOk).toEqual(['scope warn']);
    } finally {
      process.env.NODE_ENV = NODE_ENV;
    }
  });

  it('a store that somebody has written does not know what a crash loses', async () => {
    const { notOk, verdict } = await examined(recordStore(new MapTable()));
    expect(notOk).toContain('durability unknown');
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
  });

  const broken = (change: (mutex: LockStore['mutex']) => Partial<LockStore['mutex']>): LockStore => {
    const store = memoryStore();
    return { ...store, mutex: Object.assign(Object.create(store.mutex) as LockStore['mutex'], change(store.mutex)) };
  };
  it.each<[string, Parameters<typeof broken>[0], seen: string]>([
    [
      'grants a key twice',
      () => ({ acquire: async () => ({ granted: true, token: 1 }), renew: () => [Promise.resolve('renewed')], extend: undefined }),
      'queue failed: two owners have the key',
    ],
    ['loses a lease', () => ({ renew: () => [Promise.resolve('lost')] }), 'renew failed: the lease was lost'],
    ['releases nothing', () => ({ release: async () => 'lost' }), 'release failed: the lease was lost'],
    [
      'gives a token that does not grow',
      (mutex) => ({
        acquire: async (request) => {
          const reply = await mutex.acquire(request);
          return reply.granted ? { ...reply, token: 7 } : reply;
        },
      }),
      'hand over failed: the fencing token did not grow, from 7 to 7',
    ],
  ])('a store that %s', async (_what, change, seen) => {
    const { of, verdict } = await examined(broken(change));
    expect(of('probe')).toMatchObject({ state: 'bad', seen });
    expect(verdict.efficiency).toBe('no');
  });

  it('closed locks, or with wrong options, is refused', async () => {
    const locks = new Locks(memoryStore());
    await expect(locks.doctor({ probe: 0 })).rejects.toThrow('Locks.doctor: "probe" must be milliseconds, from 1 on, or false, not 0.');
    await locks.close();
    await expect(locks.doctor()).rejects.toThrow('closed');
  });
});

describe('ndl doctor', () => {
  const setting = useRedis({ port: 'free' });
  const ndl = (...args: string[]) => ndlHere(['doctor', '--probe', '100ms', '--url', `redis://127.0.0.1:${setting.server.port}`, ...args]);

  /** Numbers differ from run to run. */
  const shape = (text: string): string => text.replaceAll(/\d+([.,]\d+)*( k?ms| m?s)?/g, 'N').trimEnd();

  it('prints what the docs show, and exits with 0', async () => {
    const [, shown = ''] = /\$ npx nestjs-distributed-lock doctor[^\n]*\n(.*?)```/s.exec(read('docs/doctor.md')) ?? [];
    await eventually(async () => {
      const { code, stdout, stderr } = await ndl();
      expect([shape(stdout), stderr, code]).toEqual([shape(shown), '', 0]);
    });
  });

  it('exits with 6 for a warning with --strict, and for what is bad', async () => {
    const strict = await ndl('--strict', '--json');
    expect([strict.code, strict.stderr]).toEqual([6, '']);
    documentIn(strict.stdout, 'doctor');
    await setting.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    setting.finally(() => setting.redis.config('SET', 'maxmemory-policy', 'noeviction'));
    const { code, stdout } = await ndl();
    expect(code).toBe(6);
    expect(stdout).toMatch(/^bad {6}eviction {9} allkeys-lru\n {27}G2: CONFIG SET maxmemory-policy noeviction/m);
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^Efficiency: no, because .*\(eviction\)\. Correctness: no\.$/);
  });

  it('writes nothing with --no-probe', async () => {
    const { stdout, code } = await ndlHere(['doctor', '--no-probe', '--namespace', 'shop:'], {
      env: { REDIS_URL: `redis://127.0.0.1:${setting.server.port}` },
    });
    expect(code).toBe(0);
    expect(stdout).not.toContain('probe');
    expect(await setting.keys()).toEqual([]);
  });

  it('exits with 3 without a server, and 2 for a wrong option', async () => {
    const away = await ndl('--url', 'redis://127.0.0.1:1', '--timeout', '300ms', '--json');
    expect(away.code).toBe(3);
    // Behind what the log says of a store that is away for long.
    expect(errorIn(away.stderr.trim().split('\n').at(-1)!)).toMatchObject({ code: 'LOCK_STORE' });
    expect(await ndl('--probe', '0')).toMatchObject({ code: 2, stderr: expect.stringContaining('--no-probe') as string });
  });
});
