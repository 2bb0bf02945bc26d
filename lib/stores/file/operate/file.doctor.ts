import { statfs } from 'node:fs/promises';
import { dirname, isAbsolute } from 'node:path';
import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { bad, checksOf } from '../../../core/store/store-doctor.js';

/** File systems that may lead to another host, by their number on Linux. */
const REMOTE = new Map([
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
export function fileChecks(directory: string, given: string, typeOf = remoteType): Promise<DoctorCheck[]> {
  return checksOf({
    async location() {
      await typeOf(directory);
      return { seen: `in ${directory}` };
    },
    async 'file-system'() {
      const type = await typeOf(directory);
      if (type === undefined) return { seen: 'on no file system that is known to be remote; locks exclude the processes of this host' };
      const advice = `Locks in ${directory} exclude only the processes of one host: use a local file system.`;
      return bad(type, advice, 'other hosts are not excluded');
    },
    async path() {
      await typeOf(directory);
      const advice = 'Give an absolute path: a process that was started elsewhere has locks of its own.';
      return isAbsolute(given) ? { seen: directory } : { state: 'bad', seen: `"${given}" is relative, here ${directory}`, advice };
    },
  });
}

/** The name of a file system that may lead to another host: that of the nearest folder that exists. */
async function remoteType(directory: string): Promise<string | undefined> {
  try {
    return REMOTE.get((await statfs(directory)).type);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    return remoteType(dirname(directory));
  }
}
