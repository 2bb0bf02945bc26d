import { mkdir, statfs } from 'node:fs/promises';
import type { StoreReport } from '../../core/store/lock-store.js';

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

export async function reportOf(directory: string): Promise<StoreReport> {
  const type = await mkdir(directory, { recursive: true })
    .then(() => statfs(directory))
    .then(({ type: number }) => FOREIGN.get(number))
    .catch(() => undefined);
  return { server: 'The file store', wakesWaiters: true, advice: type === undefined ? [] : [adviceOn(type, directory)] };
}

export function adviceOn(type: string, directory: string): string {
  return `The lock directory ${directory} is on ${type}: locks in files exclude only the processes of one host, on a local file system.`;
}
