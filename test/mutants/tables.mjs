// Reads the tables of mutants, and makes their edits. README.md has the format.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Lines without a blank one between them. */
const ENTRY = /^.+(\n.+)*/gm;
const FORMAT = /^(?<guarantee>[^:\n]+): (?<defect>.+)\ntest: (?<spec>\S+)( -t '(?<test>.+)')?\n(?<edits>(file: \S+(\n[-+ ].*)+\n?)+)$/;

/** The mutants of all tables of a folder. */
export function readTables(folder) {
  const tables = readdirSync(folder).filter((file) => file.endsWith('.diff'));
  return tables.sort().flatMap((file) => mutantsOf(file.replace('.diff', ''), readFileSync(join(folder, file), 'utf8')));
}

/** The mutants of a table: `{ area, line, text, guarantee, defect, spec, test, edits: [{ file, find, replace }] }`. */
export function mutantsOf(area, table) {
  return [...table.matchAll(ENTRY)].map(({ 0: text, index }) => {
    const line = table.slice(0, index).split('\n').length;
    const { edits, ...fields } = FORMAT.exec(text)?.groups ?? {};
    if (edits === undefined) throw new Error(`${area}.diff:${line}: this is not an entry as README.md describes it:\n${text}`);
    const [, ...files] = edits.split(/^file: /m);
    return { area, line, text, ...fields, edits: files.map(readEdit) };
  });
}

function readEdit(text) {
  const [file, ...lines] = text.trimEnd().split('\n');
  const of = (signs) => lines.filter(([sign]) => signs.includes(sign)).map((line) => line.slice(1));
  const after = of(' +');
  return { file, find: of(' -').join('\n'), replace: after.length > 0 ? after.join('\n') : undefined };
}

/**
 * The files that a mutant changes, with its edits made: a map of path → text.
 *
 * @param {(file: string) => string} read the text of a file as it is.
 * @throws {Error} what to find is missing in its file, or is there more than once.
 */
export function filesOf({ edits }, read) {
  const files = new Map();
  for (const edit of edits) files.set(edit.file, edited(files.get(edit.file) ?? read(edit.file), edit));
  return files;
}

function edited(text, { file, find, replace }) {
  const places = find === '' ? 0 : text.split(find).length - 1;
  if (places !== 1) throw new Error(`the text to find is in ${file} ${places} times, not once:\n${find}`);
  const before = text.slice(0, text.indexOf(find));
  const after = text.slice(before.length + find.length);
  if (replace !== undefined) return before + replace + after;
  // Nothing is put in its place: the line goes, too, if it has nothing else.
  const ofLine = /(^|\n)[ \t]*$/.exec(before);
  return ofLine && after.startsWith('\n') ? before.slice(0, ofLine.index) + ofLine[1] + after.slice(1) : before + after;
}
