import type ts from 'typescript';
import { edited, indentAt, type Insertion, nodesOf, parse, type TypeScript, Unusual } from './source.js';

export type StoreName = 'redis' | 'memory';

const PACKAGE = 'nestjs-distributed-lock';
const WIDTH = 80; // prettier's, which Nest apps are formatted with

/** The source of a module file with the lock module in the imports of its class. @throws {Unusual} if it cannot be told where. */
export function addLockModule(typescript: TypeScript, source: string, store: StoreName, className?: string): string {
  const file = parse(typescript, source);
  const style = styleOf(typescript, file);
  const insertions = [...missingImports(typescript, file, store, style), moduleImport(typescript, file, className, store, style)];
  return edited(source, insertions);
}

/** What the user pastes where it cannot be added. */
export function lockModuleToPaste(store: StoreName): string {
  const style = { quote: "'", end: ';', unit: '  ' };
  const lines = Object.entries(namesFrom(store)).map(([path, name]) => `import { ${name} } from '${path}';`);
  return `${lines.join('\n')}\n\n@Module({\n  imports: [\n    ${call(store, style, '    ')},\n  ],\n})`;
}

/** Whether the file has a module class, of this name if one is given. */
export function hasModuleClass(typescript: TypeScript, source: string, className: string): boolean {
  return moduleClasses(typescript, parse(typescript, source)).some(({ name }) => name?.text === className);
}

interface Style {
  quote: string;
  end: string;
  /** One level of indentation. */
  unit: string;
}

function namesFrom(store: StoreName): Record<string, string> {
  return { [PACKAGE]: 'DistributedLockModule', [`${PACKAGE}/${store}`]: `${store}Store` };
}

function call(store: StoreName, { quote, unit }: Style, indent: string): string {
  if (store === 'memory') return 'DistributedLockModule.forRoot({ store: memoryStore() })';
  const lines = [
    'DistributedLockModule.forRoot({',
    `${unit}store: redisStore({`,
    `${unit}${unit}url: process.env.REDIS_URL ?? ${quote}redis://localhost:6379${quote},`,
    `${unit}}),`,
    '})',
  ];
  return lines.join(`\n${indent}`);
}

function importsOf(typescript: TypeScript, file: ts.SourceFile): ts.ImportDeclaration[] {
  return file.statements.filter((statement) => typescript.isImportDeclaration(statement));
}

function styleOf(typescript: TypeScript, file: ts.SourceFile): Style {
  const last = importsOf(typescript, file).at(-1);
  const unit = /^(\t| +)\S/m.exec(file.text.replace(/\/\*[\s\S]*?\*\//g, ''))?.[1] ?? '  ';
  return { quote: last?.moduleSpecifier.getText()[0] ?? "'", end: !last || last.getText().endsWith(';') ? ';' : '', unit };
}

function missingImports(typescript: TypeScript, file: ts.SourceFile, store: StoreName, { quote, end }: Style): Insertion[] {
  const imports = importsOf(typescript, file);
  const known = new Set(imports.flatMap(({ importClause }) => localNames(typescript, importClause)));
  const lines = Object.entries(namesFrom(store))
    .filter(([, name]) => !known.has(name))
    .map(([path, name]) => `import { ${name} } from ${quote}${path}${quote}${end}`);
  const last = imports.at(-1);
  if (!last) throw new Unusual('it has no imports');
  const at = typescript.getTrailingCommentRanges(file.text, last.end)?.at(-1)?.end ?? last.end;
  return lines.length > 0 ? [{ at, text: `\n${lines.join('\n')}` }] : [];
}

function localNames(typescript: TypeScript, clause: ts.ImportClause | undefined): string[] {
  const bindings = clause?.namedBindings;
  return bindings && typescript.isNamedImports(bindings) ? bindings.elements.map(({ name }) => name.text) : [];
}

function moduleClasses(typescript: TypeScript, file: ts.SourceFile): ts.ClassDeclaration[] {
  const classes = [...nodesOf(typescript, file)].filter((node) => typescript.isClassDeclaration(node));
  return classes.filter((node) => metadataCall(typescript, node));
}

function metadataCall(typescript: TypeScript, node: ts.ClassDeclaration): ts.CallExpression | undefined {
  const calls = (typescript.getDecorators(node) ?? []).map(({ expression }) => expression);
  return calls.filter((expression) => typescript.isCallExpression(expression)).find(({ expression }) => expression.getText() === 'Module');
}

function moduleImport(
  typescript: TypeScript,
  file: ts.SourceFile,
  className: string | undefined,
  store: StoreName,
  style: Style,
): Insertion {
  const classes = moduleClasses(typescript, file);
  const named = classes.filter(({ name }) => name?.text === className);
  const [found, another] = named.length > 0 ? named : classes;
  if (!found) throw new Unusual('it has no class with @Module()');
  if (another) throw new Unusual('it has several classes with @Module()');
  const metadata = metadataCall(typescript, found) as ts.CallExpression;
  const [argument] = metadata.arguments;
  const outer = indentAt(file.text, metadata.getStart());
  if (!argument) return { at: metadata.end - 1, text: `{\n${importsProperty(store, style, outer + style.unit)},\n${outer}}` };
  if (!typescript.isObjectLiteralExpression(argument)) throw new Unusual('the argument of @Module() is not written out in place');
  const property = argument.properties.find(({ name }) => name?.getText().replace(/['"]/g, '') === 'imports');
  if (!property) return newProperty(file, argument, store, style);
  if (!typescript.isPropertyAssignment(property) || !typescript.isArrayLiteralExpression(property.initializer)) {
    throw new Unusual('the imports of @Module() are not an array written out in place');
  }
  return intoArray(typescript, file, property.initializer, store, style);
}

function importsProperty(store: StoreName, style: Style, indent: string): string {
  const inner = indent + style.unit;
  const element = call(store, style, inner);
  return element.includes('\n') ? `${indent}imports: [\n${inner}${element},\n${indent}]` : `${indent}imports: [${element}]`;
}

/** In front: where Nest's own generators put `imports`. */
function newProperty(file: ts.SourceFile, metadata: ts.ObjectLiteralExpression, store: StoreName, style: Style): Insertion {
  const [first] = metadata.properties;
  const outer = indentAt(file.text, metadata.getStart());
  const indent = outer + style.unit;
  const property = importsProperty(store, style, indent);
  const at = metadata.getStart() + 1;
  if (first && /^\s*\n/.test(file.text.slice(at, first.getStart()))) return { at, text: `\n${property},` };
  if (first) return { at, text: `\n${property},\n${indent}`, until: at + (/^ */.exec(file.text.slice(at))?.[0].length ?? 0) };
  return { at, text: `\n${property},\n${outer}` };
}

/** At the end: a ConfigModule further up has read the `.env` file by then. */
function intoArray(
  typescript: TypeScript,
  file: ts.SourceFile,
  array: ts.ArrayLiteralExpression,
  store: StoreName,
  style: Style,
): Insertion {
  const { elements } = array;
  const inside = file.text.slice(array.getStart() + 1, array.end - 1);
  const outer = indentAt(file.text, array.getStart());
  const inner = outer + style.unit;
  const last = elements.at(-1);
  if (last && inside.includes('\n')) {
    const indent = indentAt(file.text, last.getStart());
    const at = elements.hasTrailingComma ? elements.end : last.end;
    // A remark beside the last one stays beside it.
    const until = typescript.getTrailingCommentRanges(file.text, at)?.at(-1)?.end ?? at;
    const [before, after] = elements.hasTrailingComma ? ['', ','] : [',', ''];
    return { at, text: `${before}${file.text.slice(at, until)}\n${indent}${call(store, style, indent)}${after}`, until };
  }
  const texts = elements.map((element, index) => {
    const next = elements[index + 1];
    return file.text.slice(element.pos, next ? next.pos - 1 : elements.hasTrailingComma ? elements.end - 1 : array.end - 1).trim();
  });
  const at = array.getStart() + 1;
  const until = array.end - 1;
  const line = [...texts, call(store, style, inner)].join(', ');
  const column = at - (file.text.lastIndexOf('\n', at) + 1);
  const comments = last ? '' : inside.trim();
  if (!line.includes('\n') && comments === '' && column + line.length + 2 <= WIDTH) return { at, text: line, until };
  const lines = [...(comments === '' ? [] : [comments]), ...[...texts, call(store, style, inner)].map((text) => `${text},`)];
  return { at, text: `${lines.map((text) => `\n${inner}${text}`).join('')}\n${outer}`, until };
}
