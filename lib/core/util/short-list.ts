/** A list that rarely has more than one entry. Changes make a new list, because an array that grows reserves memory for sixteen more entries. */
export type ShortList<T> = readonly T[];

const EMPTY: ShortList<never> = [];

export function emptyList<T>(): ShortList<T> {
  return EMPTY;
}

export function added<T>(list: ShortList<T>, entry: T): ShortList<T> {
  return list.length === 0 ? [entry] : [...list, entry];
}

export function removed<T>(list: ShortList<T>, entry: T): ShortList<T> {
  return list.length === 1 && list[0] === entry ? EMPTY : list.filter((other) => other !== entry);
}
