const EMPTY: readonly never[] = [];
/** From this length on a list is changed in place: to copy a list of thousands for each of its entries would block the process. */
const LONG = 16;

/**
 * The list with one more entry. Lists that rarely have more than one are copied by each change, because an array that grows reserves memory for
 * sixteen more entries. `concat` and `filter` are much slower for one entry (`npm run bench -- builds`).
 */
export function added<T>(list: readonly T[], entry: T): readonly T[] {
  if (list.length === 0) return [entry];
  if (list.length < LONG) return [...list, entry];
  (list as T[]).push(entry);
  return list;
}

export function removed<T>(list: readonly T[], entry: T): readonly T[] {
  if (list.length === 1 && list[0] === entry) return EMPTY;
  if (list.length < LONG) return list.filter((other) => other !== entry);
  const index = list.indexOf(entry);
  if (index >= 0) (list as T[]).splice(index, 1);
  return list;
}
