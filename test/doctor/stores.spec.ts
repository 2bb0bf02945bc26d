// The doctor of stores that have no server.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { recordStore } from 'nestjs-distributed-lock/records';
import { doctorOf } from '../../lib/stores/file/file.report.js';
import { MapTable } from '../support/map-table.js';
import { examined } from './examined.js';

describe('the doctor of', () => {
  let folder: string;
  beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'doctor-'))));
  afterAll(() => rm(folder, { recursive: true }));

  it('files tries a lock, and looks at the file system', async () => {
    const { notOk, checks, verdict } = await examined(fileStore({ directory: folder }));
    expect(notOk).toEqual([]);
    expect(checks.map(({ id }) => id)).toEqual(['file-system', 'round-trips', 'probe', 'wake-ups', 'keys', 'fences']);
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'yes' });
  });

  it('files on a remote file system says that other hosts are not excluded', async () => {
    const store: LockStore = { ...fileStore({ directory: folder }), doctor: doctorOf(folder, async () => 'NFS') };
    const { of, verdict } = await examined(store);
    expect(of('file-system')).toMatchObject({ state: 'bad', seen: 'NFS' });
    expect(verdict).toMatchObject({ efficiency: 'no', correctness: 'no' });
  });

  it('a directory that cannot be', async () => {
    const file = join(folder, 'file');
    await writeFile(file, '');
    await expect(examined(fileStore({ directory: join(file, 'locks') }))).rejects.toThrow('ENOTDIR');
  });

  it('memory', async () => {
    const { notOk, of } = await examined(memoryStore());
    expect(notOk).toEqual([]);
    expect(of('round-trips')).toMatchObject({ state: 'ok' });
    expect(of('scope').seen).toContain('this process only');
  });

  it('a store that somebody has written does not know what a crash loses', async () => {
    const { notOk, verdict } = await examined(recordStore(new MapTable()));
    expect(notOk).toContain('durability unknown');
    expect(verdict).toMatchObject({ efficiency: 'yes', correctness: 'token' });
  });
});

describe('a lock that does not do what it must', () => {
  const broken = (mutex: Partial<LockStore['mutex']>): LockStore => {
    const store = memoryStore();
    return { ...store, mutex: Object.assign(Object.create(store.mutex) as LockStore['mutex'], mutex) };
  };
  it.each<[string, Partial<LockStore['mutex']>, string]>([
    [
      'grants a key twice',
      { acquire: async () => ({ granted: true, token: 1 }), renew: () => [Promise.resolve('renewed')], extend: undefined },
      'queue failed: two owners have the key',
    ],
    ['loses a lease', { renew: () => [Promise.resolve('lost')] }, 'renew failed: the lease was lost'],
    ['releases nothing', { release: async () => 'lost' }, 'release failed: the lease was lost'],
  ])('%s', async (_, mutex, seen) => {
    const { of, verdict } = await examined(broken(mutex));
    expect(of('probe')).toMatchObject({ state: 'bad', seen });
    expect(verdict.efficiency).toBe('no');
  });

  it('gives a token that does not grow', async () => {
    const real = memoryStore();
    const acquire: LockStore['mutex']['acquire'] = async (request) => {
      const reply = await real.mutex.acquire(request);
      return reply.granted ? { ...reply, token: 7 } : reply;
    };
    const { of } = await examined({ ...real, mutex: Object.assign(Object.create(real.mutex) as LockStore['mutex'], { acquire }) });
    expect(of('probe')).toMatchObject({ state: 'bad', seen: 'hand over failed: the fencing token did not grow, from 7 to 7' });
  });
});

it('wrong options and closed locks are refused', async () => {
  const locks = new Locks(memoryStore());
  await expect(locks.doctor({ probe: 0 })).rejects.toThrow('Locks.doctor: "probe" must be milliseconds, from 1 on, or false, not 0.');
  await locks.close();
  await expect(locks.doctor()).rejects.toThrow('closed');
});
