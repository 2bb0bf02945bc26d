import type { Locks } from 'nestjs-distributed-lock';

export async function examine(locks: Locks): Promise<string[]> {
  const print: string[] = [];
  const console = { log: (...lines: string[]) => print.push(...lines) };
  // #region doctor-check
  const { checks, leastKeyTimeout, verdict } = await locks.doctor({ probe: 200 });
  const bad = checks.filter(({ state }) => state === 'bad');
  if (verdict.efficiency === 'no') throw new Error(bad.map(({ id, seen, advice }) => `${id}: ${seen}. ${advice}`).join('\n'));
  console.log(verdict.text, `keyTimeout of ${leastKeyTimeout} ms or more`);
  // #endregion
  return print;
}
