const EMPTY: readonly never[] = [];

/**
 * The list with one more entry. Lists that rarely have more than one are copied by each change, because an array that grows
 * reserves memory for sixteen more entries. `concat` and `filter` are much slower for one entry.
 */
export function added<T>(list: readonly T[], entry: T): readonly T[] {
  return list.length === 0 ? [entry] : [...list, entry];
}

export function removed<T>(list: readonly T[], entry: T): readonly T[] {
  return list.length === 1 && list[0] === entry ? EMPTY : list.filter((other) => other !== entry);
}
