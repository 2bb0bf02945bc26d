import { readFileSync, writeFileSync } from 'node:fs';

/** Writes a generated file, unless it has this text: its date stays then, and nothing is built again. */
export function writeIfChanged(target, text) {
  let current;
  try {
    current = readFileSync(target, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  if (current !== text) writeFileSync(target, text);
}
