import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Writes a generated file, unless it has this text: its date stays then, and nothing is built again. */
export function writeIfChanged(target, text) {
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  writeFileSync(target, text);
}
