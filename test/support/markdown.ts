import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Where npm runs its scripts. */
export const ROOT = process.cwd();

export interface Block {
  /** File and line, for messages. */
  where: string;
  language: string;
  text: string;
}

export interface Region {
  file: string;
  name: string;
  text: string;
}

export interface Link {
  where: string;
  /** Path from the root of the repository; undefined: the same file. */
  file: string;
  anchor: string | undefined;
}

const FENCE = /^ *```(\S*)\n(.*?)^ *```$/gms;

/** README.md and the pages of docs. */
export function documents(): string[] {
  return ['README.md', ...filesIn('docs').filter((file) => file.endsWith('.md'))];
}

export function filesIn(folder: string): string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

export function blocksOf(file: string): Block[] {
  const text = read(file);
  return [...text.matchAll(FENCE)].map(({ index, 1: language = '', 2: body = '' }) => ({
    where: `${file}:${text.slice(0, index).split('\n').length}`,
    language,
    text: dedent(body),
  }));
}

/** The text between `// #region name` and `// #endregion`. */
export function regionsOf(file: string): Region[] {
  const regions = read(file).matchAll(/^ *\/\/ #region (\S+)\n(.*?)^ *\/\/ #endregion$/gms);
  return [...regions].map(([, name = '', body = '']) => ({ file, name, text: dedent(body) }));
}

/** Links to files of this repository. */
export function linksOf(file: string): Link[] {
  const links = read(file)
    .replace(FENCE, '')
    .matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g);
  return [...links].map(([link, path = '', anchor]) => ({
    where: `${file}: ${link}`,
    file: path === '' ? file : join(dirname(file), path),
    anchor,
  }));
}

/** The anchors of a file's headings, as GitHub makes them. */
export function anchorsOf(file: string): string[] {
  const headings = read(file)
    .replace(FENCE, '')
    .matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function dedent(text: string): string {
  const lines = text.split('\n').map((line) => line.trimEnd());
  const margin = Math.min(...lines.filter((line) => line !== '').map((line) => line.search(/\S/)));
  return lines
    .map((line) => line.slice(margin))
    .join('\n')
    .trim();
}
