import type ts from 'typescript';
import { edited, indentAt, type Insertion, nodesOf, parse, type TypeScript, Unusual } from './source.js';

/** The stores to choose from, each with the package of its client, and the variable that holds its address. */
export const STORES = {
  redis: { client: 'ioredis', range: '^5.3.0 || ^6.0.0', url: 'REDIS_URL', more: [] },
  postgres: { client: 'pg', range: '^8.7.0', url: 'DATABASE_URL', more: ["schema: 'create'"] },
  mysql: { client: 'mysql2', range: '^2.3.3 || ^3.0.0', url: 'DATABASE_URL', more: ["schema: 'create'"] },
  memory: undefined,
};
export type StoreName = keyof typeof STORES;

export interface Setup {
  store: StoreName;
  /** The option `namespace`. */
  namespace?: string;
  /** Whether the module has a `ConfigModule`: then its service says where the server is. */
  hasConfig?: boolean;
}

interface Style {
  quote: string;
  end: string;
  /** One level of indentation. */
  unit: string;
}

const PACKAGE = 'nestjs-distributed-lock';
const FILTER = '{ provide: APP_FILTER, useClass: LockExceptionFilter }';

/**
 * The source of a module file with the lock module in the imports and the filter in the providers of its class.
 *
 * @throws {Unusual} if it is not clear where they belong.
 */
export function addLockModule(typescript: TypeScript, source: string, wanted: Setup, className?: string): string {
  const file = parse(typescript, source);
  const hasConfig = STORES[wanted.store] !== undefined && importedNames(typescript, file).has('ConfigModule');
  const setup = { ...wanted, hasConfig };
  const imported = edited(source, missingImports(typescript, file, setup));
  const filtered = addElement(typescript, imported, 'providers', () => FILTER, className);
  return addElement(typescript, filtered, 'imports', (style, indent) => moduleCall(setup, style, indent), className);
}

/** The code that the user pastes where it cannot be added. */
export function lockModuleToPaste(setup: Setup): string {
  const style = { quote: "'", end: ';', unit: '  ' };
  const lines = Object.entries(namesFrom(setup)).map(([path, names]) => importOf(names, path, style));
  const call = moduleCall(setup, style, '    ');
  return `${lines.join('\n')}\n\n@Module({\n  imports: [\n    ${call},\n  ],\n  providers: [${FILTER}],\n})`;
}

/** Whether the file has a module class of this name. */
export function hasModuleClass(typescript: TypeScript, source: string, className: string): boolean {
  return moduleClasses(typescript, parse(typescript, source)).some(({ name }) => name?.text === className);
}

function namesFrom({ store, hasConfig }: Setup): Record<string, string[]> {
  return {
    ...(hasConfig && { '@nestjs/config': ['ConfigService'] }),
    '@nestjs/core': ['APP_FILTER'],
    [PACKAGE]: ['DistributedLockModule', 'LockExceptionFilter'],
    [`${PACKAGE}/${store}`]: [`${store}Store`],
  };
}

/** Breaks the line as Prettier does, which the ESLint of a new app runs. */
function importOf(names: string[], path: string, { quote, end, unit }: Style): string {
  const from = `from ${quote}${path}${quote}${end}`;
  const line = `import { ${names.join(', ')} } ${from}`;
  return line.length <= 80 ? line : `import {${names.map((name) => `\n${unit}${name},`).join('')}\n} ${from}`;
}

function moduleCall({ store, namespace, hasConfig }: Setup, { quote, unit }: Style, indent: string): string {
  const server = STORES[store];
  // Without the variable the app does not start: an address of the developer's machine would be used in production.
  const url = hasConfig ? `config.getOrThrow<string>('${server?.url}')` : `process.env.${server?.url}!`;
  const options = server ? [`url: ${url}`, ...server.more] : [];
  const argument = server ? `{${linesOf(options, unit)}\n}` : '';
  const fields = linesOf([`store: ${store}Store(${argument})`, ...(namespace === undefined ? [] : [`namespace: '${namespace}'`])], unit);
  const ofConfig = ['imports: [ConfigModule]', 'inject: [ConfigService]', `useFactory: (config: ConfigService) => ({${fields}\n})`];
  const call = hasConfig ? `forRootAsync({${linesOf(ofConfig, unit)}\n})` : `forRoot({${fields}\n})`;
  return `DistributedLockModule.${call}`.replaceAll("'", quote).replaceAll('\n', `\n${indent}`);
}

/** Each on a line of its own, further in. */
function linesOf(parts: readonly string[], unit: string): string {
  return parts.map((part) => `\n${part},`.replaceAll('\n', `\n${unit}`)).join('');
}

function missingImports(typescript: TypeScript, file: ts.SourceFile, setup: Setup): Insertion[] {
  const last = importsOf(typescript, file).at(-1);
  if (!last) throw new Unusual('it has no imports');
  const known = importedNames(typescript, file);
  const style = styleOf(typescript, file);
  const lines = Object.entries(namesFrom(setup))
    .map(([path, names]) => ({ path, names: names.filter((name) => !known.has(name)) }))
    .filter(({ names }) => names.length > 0)
    .map(({ path, names }) => importOf(names, path, style));
  const at = typescript.getTrailingCommentRanges(file.text, last.end)?.at(-1)?.end ?? last.end;
  return [{ at, text: lines.map((line) => `\n${line}`).join('') }];
}

function importsOf(typescript: TypeScript, { statements }: ts.SourceFile): ts.ImportDeclaration[] {
  return statements.filter((statement) => typescript.isImportDeclaration(statement));
}

function importedNames(typescript: TypeScript, file: ts.SourceFile): Set<string> {
  const bindings = importsOf(typescript, file).flatMap(({ importClause }) => importClause?.namedBindings ?? []);
  return new Set(bindings.flatMap((each) => (typescript.isNamedImports(each) ? each.elements.map(({ name }) => name.text) : [])));
}

function styleOf(typescript: TypeScript, file: ts.SourceFile): Style {
  const last = importsOf(typescript, file).at(-1);
  const unit = /^(\t| +)\S/m.exec(file.text.replace(/\/\*[\s\S]*?\*\//g, ''))?.[1] ?? '  ';
  return { quote: last?.moduleSpecifier.getText()[0] ?? "'", end: !last || last.getText().endsWith(';') ? ';' : '', unit };
}

function moduleClasses(typescript: TypeScript, file: ts.SourceFile): ts.ClassDeclaration[] {
  const classes = [...nodesOf(typescript, file)].filter((node) => typescript.isClassDeclaration(node));
  return classes.filter((node) => metadataCall(typescript, node));
}

function metadataCall(typescript: TypeScript, node: ts.ClassDeclaration): ts.CallExpression | undefined {
  const calls = (typescript.getDecorators(node) ?? []).map(({ expression }) => expression);
  return calls.filter((expression) => typescript.isCallExpression(expression)).find(({ expression }) => expression.getText() === 'Module');
}

/** The source with one more element in a list (`imports`, `providers`) of the metadata of its module class. */
function addElement(
  typescript: TypeScript,
  source: string,
  list: string,
  element: (style: Style, indent: string) => string,
  className?: string,
): string {
  const file = parse(typescript, source);
  const classes = moduleClasses(typescript, file);
  const named = classes.filter(({ name }) => name?.text === className);
  const [found, another] = named.length > 0 ? named : classes;
  if (!found) throw new Unusual('it has no class with @Module()');
  if (another) throw new Unusual('it has several classes with @Module()');
  const style = styleOf(typescript, file);
  const metadata = metadataCall(typescript, found) as ts.CallExpression;
  const outer = indentAt(source, metadata.getStart());
  const indent = outer + style.unit;
  const inner = indent + style.unit;
  const newList = `\n${indent}${list}: [\n${inner}${element(style, inner)},\n${indent}],`;
  const [argument] = metadata.arguments;
  if (!argument) return edited(source, [{ at: metadata.end - 1, text: `{${newList}\n${outer}}` }]);
  if (!typescript.isObjectLiteralExpression(argument)) throw new Unusual('the argument of @Module() is not written out in place');
  const property = argument.properties.find(({ name }) => name?.getText().replace(/['"]/g, '') === list);
  if (!property) {
    // In front, where Nest's own generators put `imports`.
    const at = argument.getStart() + 1;
    const isOnNextLine = /^\s*\n/.test(source.slice(at));
    if (isOnNextLine) return edited(source, [{ at, text: newList }]);
    const until = argument.properties[0]?.getStart() ?? at;
    return edited(source, [{ at, text: `${newList}\n${argument.properties.length > 0 ? indent : outer}`, until }]);
  }
  if (!typescript.isPropertyAssignment(property) || !typescript.isArrayLiteralExpression(property.initializer)) {
    throw new Unusual(`the ${list} of @Module() are not an array written out in place`);
  }
  const array = property.initializer;
  return edited(source, [intoArray(typescript, file, array, (at) => element(style, at), style.unit)]);
}

/** At the end: a ConfigModule further up has read the `.env` file by then. Each element then stands on a line of its own. */
function intoArray(
  typescript: TypeScript,
  { text }: ts.SourceFile,
  array: ts.ArrayLiteralExpression,
  element: (indent: string) => string,
  unit: string,
): Insertion {
  const { elements } = array;
  const [at, until] = [array.getStart() + 1, array.end - 1];
  const inside = text.slice(at, until);
  const last = elements.at(-1);
  if (last && inside.includes('\n')) {
    const indent = indentAt(text, last.getStart());
    const end = elements.hasTrailingComma ? elements.end : last.end;
    // A comment beside the last one stays beside it.
    const behind = typescript.getTrailingCommentRanges(text, end)?.at(-1)?.end ?? end;
    const [before, after] = elements.hasTrailingComma ? ['', ','] : [',', ''];
    return { at: end, text: `${before}${text.slice(end, behind)}\n${indent}${element(indent)}${after}`, until: behind };
  }
  const outer = indentAt(text, array.getStart());
  const inner = outer + unit;
  const texts = elements.map((one, index) => {
    const next = elements[index + 1];
    return text.slice(one.pos, next ? next.pos - 1 : elements.hasTrailingComma ? elements.end - 1 : until).trim();
  });
  const lines = [...texts, element(inner)].map((each) => `\n${inner}${each},`).join('');
  return { at, text: `${last ? '' : inside.trimEnd()}${lines}\n${outer}`, until };
}
