import { mkdir, statfs } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { StoreReport } from '../../core/store/lock-store.js';
import { checkOf, type Finding, type StoreDoctor } from '../../core/store/store-doctor.js';

/** File systems that may lead to another host, by their number on Linux. */
const FOREIGN = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9P'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
]);

/** @param given what the user calls the directory. */
export async function reportOf(directory: string, given: string): Promise<StoreReport> {
  const type = await foreignType(directory).catch(() => undefined);
  const advice = type === undefined ? [] : [adviceOn(type, directory)];
  if (!isAbsolute(given))
    advice.push(`The lock directory "${given}" is relative, here ${directory}: a process that was started elsewhere has locks of its own.`);
  return { server: 'The file store', wakesWaiters: true, advice };
}

export function adviceOn(type: string, directory: string): string {
  return `The lock directory ${directory} is on ${type}: locks in files exclude only the processes of one host, on a local file system.`;
}

/** For the doctor. */
export function doctorOf(directory: string, typeOf = foreignType): StoreDoctor {
  const unseen = { purpose: 'efficiency', because: 'it is unknown where the lock directory is' } as const;
  const check = { id: 'file-system', name: 'where the directory is', touches: ['G2'], unseen };
  const look = async (): Promise<Finding> => {
    const type = await typeOf(directory);
    if (type === undefined)
      return { seen: `${directory}, on no file system that is known to be remote; locks exclude the processes of this host` };
    const limits = { purpose: 'efficiency', because: 'other hosts are not excluded' } as const;
    return { state: 'bad', seen: type, advice: adviceOn(type, directory), limits };
  };
  return { checks: () => Promise.all([checkOf(check, look)]) };
}

/** What may lead to another host; `undefined`: it is no such file system. */
async function foreignType(directory: string): Promise<string | undefined> {
  await mkdir(directory, { recursive: true });
  return FOREIGN.get((await statfs(directory)).type);
}
