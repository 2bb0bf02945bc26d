import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry, Said } from './entry.js';

/** All histories of a folder, merged by time. The last line of a killed worker may be torn: then it was never said. */
export function readHistory(folder: string): Entry[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.jsonl'));
  const entries = files.flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n').flatMap(parse));
  return entries.sort((a, b) => a.t - b.t);
}

function parse(line: string): Entry[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as Entry];
  } catch {
    return [];
  }
}

/** The entries of these kinds. */
export function select<E extends Entry['e']>(history: readonly Entry[], ...kinds: E[]): Said<E>[] {
  return history.filter((entry): entry is Said<E> => (kinds as string[]).includes(entry.e));
}
