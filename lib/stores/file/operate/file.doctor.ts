import { mkdir, statfs } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checkOf, type Finding } from '../../../core/store/store-doctor.js';

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
export function fileChecks(directory: string, given: string, typeOf = foreignType): Promise<DoctorCheck[]> {
  const unseen = { purpose: 'efficiency', because: 'it is unknown where the lock directory is' } as const;
  return Promise.all([
    checkOf({ id: 'file-system', name: 'where the directory is', touches: ['G2'], unseen }, async (): Promise<Finding> => {
      const type = await typeOf(directory);
      if (type === undefined) return { seen: 'on no file system that is known to be remote; locks exclude the processes of this host' };
      const advice = `Locks in ${directory} exclude only the processes of one host: use a local file system.`;
      return bad(type, advice, 'other hosts are not excluded');
    }),
    checkOf({ id: 'path', name: 'path of the directory', touches: ['G2'] }, async (): Promise<Finding> => {
      await typeOf(directory);
      if (isAbsolute(given)) return { seen: directory };
      const advice = 'Give an absolute path: a process that was started elsewhere has locks of its own.';
      return { state: 'bad', seen: `"${given}" is relative, here ${directory}`, advice };
    }),
  ]);
}

/** What may lead to another host; `undefined`: it is no such file system. */
async function foreignType(directory: string): Promise<string | undefined> {
  await mkdir(directory, { recursive: true });
  return FOREIGN.get((await statfs(directory)).type);
}
