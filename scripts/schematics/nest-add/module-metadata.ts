import type ts from 'typescript';
import { edited, indentAt, type Insertion, nodesOf, parse, type TypeScript, Unusual } from './source.js';

export interface Style {
  quote: string;
  end: string;
  /** One level of indentation. */
  unit: string;
}

/** The text of an element, whose first line stands behind this indentation. */
export type Element = (style: Style, indent: string) => string;

const WIDTH = 80; // prettier's, which Nest apps are formatted with

export function styleOf(typescript: TypeScript, file: ts.SourceFile): Style {
  const last = file.statements.filter((statement) => typescript.isImportDeclaration(statement)).at(-1);
  const unit = /^(\t| +)\S/m.exec(file.text.replace(/\/\*[\s\S]*?\*\//g, ''))?.[1] ?? '  ';
  return { quote: last?.moduleSpecifier.getText()[0] ?? "'", end: !last || last.getText().endsWith(';') ? ';' : '', unit };
}

/** Whether the file has a module class of this name. */
export function hasModuleClass(typescript: TypeScript, source: string, className: string): boolean {
  return moduleClasses(typescript, parse(typescript, source)).some(({ name }) => name?.text === className);
}

/** The source with an element more in an array (`imports`, `providers`) of the metadata of its module class. @throws {Unusual} if it cannot be told where. */
export function addElement(typescript: TypeScript, source: string, list: string, element: Element, className?: string): string {
  const file = parse(typescript, source);
  return edited(source, [insertion(typescript, file, className, list, (indent) => element(styleOf(typescript, file), indent))]);
}

function moduleClasses(typescript: TypeScript, file: ts.SourceFile): ts.ClassDeclaration[] {
  const classes = [...nodesOf(typescript, file)].filter((node) => typescript.isClassDeclaration(node));
  return classes.filter((node) => metadataCall(typescript, node));
}

function metadataCall(typescript: TypeScript, node: ts.ClassDeclaration): ts.CallExpression | undefined {
  const calls = (typescript.getDecorators(node) ?? []).map(({ expression }) => expression);
  return calls.filter((expression) => typescript.isCallExpression(expression)).find(({ expression }) => expression.getText() === 'Module');
}

type Indented = (indent: string) => string;

function insertion(typescript: TypeScript, file: ts.SourceFile, className: string | undefined, list: string, element: Indented): Insertion {
  const classes = moduleClasses(typescript, file);
  const named = classes.filter(({ name }) => name?.text === className);
  const [found, another] = named.length > 0 ? named : classes;
  if (!found) throw new Unusual('it has no class with @Module()');
  if (another) throw new Unusual('it has several classes with @Module()');
  const { unit } = styleOf(typescript, file);
  const metadata = metadataCall(typescript, found) as ts.CallExpression;
  const [argument] = metadata.arguments;
  const outer = indentAt(file.text, metadata.getStart());
  if (!argument) return { at: metadata.end - 1, text: `{\n${newList(list, element, outer + unit, unit)},\n${outer}}` };
  if (!typescript.isObjectLiteralExpression(argument)) throw new Unusual('the argument of @Module() is not written out in place');
  const property = argument.properties.find(({ name }) => name?.getText().replace(/['"]/g, '') === list);
  if (!property) return newProperty(file, argument, (indent) => newList(list, element, indent, unit), unit);
  if (!typescript.isPropertyAssignment(property) || !typescript.isArrayLiteralExpression(property.initializer)) {
    throw new Unusual(`the ${list} of @Module() are not an array written out in place`);
  }
  return intoArray(typescript, file, property.initializer, element, unit);
}

function newList(list: string, element: Indented, indent: string, unit: string): string {
  const inner = indent + unit;
  const text = element(inner);
  const isShort = !text.includes('\n') && `${indent}${list}: [${text}],`.length <= WIDTH;
  return isShort ? `${indent}${list}: [${text}]` : `${indent}${list}: [\n${inner}${text},\n${indent}]`;
}

/** In front: where Nest's own generators put `imports`. */
function newProperty(file: ts.SourceFile, metadata: ts.ObjectLiteralExpression, property: Indented, unit: string): Insertion {
  const [first] = metadata.properties;
  const outer = indentAt(file.text, metadata.getStart());
  const indent = outer + unit;
  const at = metadata.getStart() + 1;
  if (first && /^\s*\n/.test(file.text.slice(at, first.getStart()))) return { at, text: `\n${property(indent)},` };
  if (first) return { at, text: `\n${property(indent)},\n${indent}`, until: at + (/^ */.exec(file.text.slice(at))?.[0].length ?? 0) };
  return { at, text: `\n${property(indent)},\n${outer}` };
}

/** At the end: a ConfigModule further up has read the `.env` file by then. */
function intoArray(
  typescript: TypeScript,
  file: ts.SourceFile,
  array: ts.ArrayLiteralExpression,
  element: Indented,
  unit: string,
): Insertion {
  const { elements } = array;
  const inside = file.text.slice(array.getStart() + 1, array.end - 1);
  const outer = indentAt(file.text, array.getStart());
  const inner = outer + unit;
  const last = elements.at(-1);
  if (last && inside.includes('\n')) {
    const indent = indentAt(file.text, last.getStart());
    const at = elements.hasTrailingComma ? elements.end : last.end;
    // A remark beside the last one stays beside it.
    const until = typescript.getTrailingCommentRanges(file.text, at)?.at(-1)?.end ?? at;
    const [before, after] = elements.hasTrailingComma ? ['', ','] : [',', ''];
    return { at, text: `${before}${file.text.slice(at, until)}\n${indent}${element(indent)}${after}`, until };
  }
  const texts = elements.map((one, index) => {
    const next = elements[index + 1];
    return file.text.slice(one.pos, next ? next.pos - 1 : elements.hasTrailingComma ? elements.end - 1 : array.end - 1).trim();
  });
  const at = array.getStart() + 1;
  const until = array.end - 1;
  const line = [...texts, element(inner)].join(', ');
  const column = at - (file.text.lastIndexOf('\n', at) + 1);
  const comments = last ? '' : inside.trim();
  if (!line.includes('\n') && comments === '' && column + line.length + 2 <= WIDTH) return { at, text: line, until };
  const lines = [...(comments === '' ? [] : [comments]), ...[...texts, element(inner)].map((text) => `${text},`)];
  return { at, text: `${lines.map((text) => `\n${inner}${text}`).join('')}\n${outer}`, until };
}
