import type ts from 'typescript';

/** The user's own compiler: this package has no dependencies. */
export type TypeScript = typeof ts;

/** The file is written in a way that is not edited for the user. The message is the reason, as the rest of a sentence. */
export class Unusual extends Error {}

export interface Insertion {
  at: number;
  text: string;
  /** Where what is replaced ends; default: nothing is. */
  until?: number;
}

export function parse(typescript: TypeScript, text: string): ts.SourceFile {
  return typescript.createSourceFile('source.ts', text, typescript.ScriptTarget.Latest, true);
}

/** Every node under this one, itself first. */
export function* nodesOf(typescript: TypeScript, node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  typescript.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesOf(typescript, child);
}

/** The text with all of them made, its ends of line as they were. */
export function edited(text: string, insertions: Insertion[]): string {
  const ending = text.includes('\r\n') ? '\r\n' : '\n';
  return [...insertions]
    .sort((a, b) => b.at - a.at)
    .reduce((result, { at, text: added, until = at }) => result.slice(0, at) + added.replace(/\r?\n/g, ending) + result.slice(until), text);
}

/** The white space that the line of this position begins with. */
export function indentAt(text: string, position: number): string {
  const start = text.lastIndexOf('\n', position - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start))?.[0] ?? '';
}
