import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface WrongClock {
  /** for the processes whose wall clock is to be wrong */
  readonly env: NodeJS.ProcessEnv;
  /** from now on it is wrong by so many ms */
  set(ms: number): void;
}

const folders: string[] = [];

/** A wall clock that can jump: a small library, compiled here, that is loaded before libc. */
export async function startClock(): Promise<WrongClock> {
  const folder = mkdtempSync(join(tmpdir(), 'chaos-clock-'));
  if (folders.push(folder) === 1) process.once('exit', removeAll);
  const library = join(folder, 'clock-shim.so');
  const source = fileURLToPath(new URL('clock-shim.c', import.meta.url));
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  const file = join(folder, 'offset');
  // As long as all later texts, so that a reader never sees half of one.
  const set = (ms: number): void => writeFileSync(file, String(Math.round(ms)).padStart(16), { flag: 'r+' });
  writeFileSync(file, '0'.padStart(16));
  return { env: { LD_PRELOAD: library, CHAOS_CLOCK: file }, set };
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
