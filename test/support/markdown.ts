import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

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
  text: string;
  /** Path from the root of the repository; undefined: the same file. */
  file: string;
  anchor: string | undefined;
}

const FENCE = /^ *```(\S*)\n(.*?)^ *```$/gms;

/** README.md, its translation and the pages of docs. */
export function documents(): string[] {
  return ['README.md', 'README.zh-CN.md', ...filesIn('docs').filter((file) => file.endsWith('.md'))];
}

/** Every page of the repository, by its path. */
export function pages(): Map<string, string> {
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !/^(\.(?!changeset|github)|node_modules|dist|coverage|api)/.test(entry.name),
  );
  const files = [...readdirSync(ROOT), ...folders.flatMap(({ name }) => filesIn(name))];
  return new Map(files.filter((file) => file.endsWith('.md')).map((file) => [file, read(file)]));
}

export function filesIn(folder: string): string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
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
function linksOf(file: string, page: string): Link[] {
  const links = page.replace(FENCE, '').matchAll(/\[([^\][]*)\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g);
  return [...links].map(([link, text = '', path = '', anchor]) => ({
    where: `${file}: ${link}`,
    text,
    file: path === '' ? file : join(dirname(file), path),
    anchor,
  }));
}

/** The links of these pages that lead nowhere, or elsewhere than their text says: one that is the name of a page leads to that page. */
export function wrongLinks(pages: Map<string, string>): string[] {
  const links = [...pages].flatMap(([file, page]) => linksOf(file, page));
  const names = [...pages].map(([file, page]) => ({ file, of: [basename(file, '.md'), anchorsOf(page)[0]] }));
  const isWrong = ({ text, file, anchor }: Link): boolean => {
    const page = pages.get(file);
    if (page === undefined) return !existsSync(join(ROOT, file)) || (!text.includes(' ') && !slugOf(file).includes(slugOf(text)));
    if (anchor !== undefined && !anchorsOf(page).includes(anchor)) return true;
    const said = slugOf(text).replace(/^(an?|the)-/, '');
    const named = names.filter(({ of }) => of.includes(said));
    return named.length > 0 && named.every((other) => other.file !== file) && !anchor?.includes(said);
  };
  return links.filter(isWrong).map(({ where }) => where);
}

/** The anchors of a page's headings. */
function anchorsOf(page: string): string[] {
  const headings = page.replace(FENCE, '').matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = '']) => slugOf(heading));
}

/** As GitHub makes an anchor. */
function slugOf(text: string): string {
  const words = text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '');
  return words.replaceAll(' ', '-');
}

function dedent(text: string): string {
  const lines = text.split('\n').map((line) => line.trimEnd());
  const margin = Math.min(...lines.filter((line) => line !== '').map((line) => line.search(/\S/)));
  return lines
    .map((line) => line.slice(margin))
    .join('\n')
    .trim();
}
