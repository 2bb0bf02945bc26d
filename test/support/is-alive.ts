import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/**
 * Whether this process still runs. `kill(pid, 0)` also finds a zombie: one that has ended and that its parent has not asked for yet, as in a container
 * whose first process asks for none.
 */
export function isAlive(pid: number): boolean {
  const state = existsSync('/proc/self/stat') ? stateInProc(pid) : stateByPs(pid);
  return state !== undefined && !/^[ZX]/i.test(state);
}

function stateInProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2); // after the name, which may hold any characters
  } catch {
    return undefined;
  }
}

function stateByPs(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}
