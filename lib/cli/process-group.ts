import { readdirSync, readFileSync } from 'node:fs';

/** Whether a process of the group runs. */
export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM';
  }
  return !areZombies(group);
}

/** Processes that have ended stay in their group until their parent asks how, which the first process of a container may never do. */
function areZombies(group: number): boolean {
  let ids: string[];
  try {
    ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return false;
  }
  const states = ids.map(stateOf).filter((each) => each?.group === group);
  return states.length > 0 && states.every((each) => each?.state === 'Z' || each?.state === 'X');
}

function stateOf(id: string): { readonly state: string; readonly group: number } | undefined {
  try {
    // `id (name) state parent group …`, where a name may have any characters.
    const text = readFileSync(`/proc/${id}/stat`, 'latin1');
    const [state = '', , group] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group) };
  } catch {
    return undefined;
  }
}
