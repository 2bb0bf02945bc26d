import type ts from 'typescript';
import { addElement, hasModuleClass, type Style, styleOf } from './module-metadata.js';
import { edited, type Insertion, parse, type TypeScript, Unusual } from './source.js';

export { hasModuleClass };

export type StoreName = 'redis' | 'memory';

export interface Setup {
  store: StoreName;
  /** Put before every key. */
  namespace?: string;
}

const PACKAGE = 'nestjs-distributed-lock';
const FILTER = '{ provide: APP_FILTER, useClass: LockExceptionFilter }';

/** The source of a module file with the lock module in the imports and the filter in the providers of its class. @throws {Unusual} if it cannot be told where. */
export function addLockModule(typescript: TypeScript, source: string, setup: Setup, className?: string): string {
  const imported = edited(source, missingImports(typescript, parse(typescript, source), setup));
  const filtered = addElement(typescript, imported, 'providers', () => FILTER, className);
  return addElement(typescript, filtered, 'imports', (style, indent) => call(setup, style, indent), className);
}

/** What the user pastes where it cannot be added. */
export function lockModuleToPaste(setup: Setup): string {
  const style = { quote: "'", end: ';', unit: '  ' };
  const lines = Object.entries(namesFrom(setup)).map(([path, names]) => importOf(names, path, style));
  return `${lines.join('\n')}\n\n@Module({\n  imports: [\n    ${call(setup, style, '    ')},\n  ],\n  providers: [${FILTER}],\n})`;
}

function namesFrom({ store }: Setup): Record<string, string[]> {
  return {
    '@nestjs/core': ['APP_FILTER'],
    [PACKAGE]: ['DistributedLockModule', 'LockExceptionFilter'],
    [`${PACKAGE}/${store}`]: [`${store}Store`],
  };
}

function importOf(names: string[], path: string, { quote, end }: Style): string {
  return `import { ${names.join(', ')} } from ${quote}${path}${quote}${end}`;
}

function call({ store, namespace }: Setup, { quote, unit }: Style, indent: string): string {
  const own = namespace === undefined ? [] : [`namespace: ${quote}${namespace}${quote}`];
  if (store === 'memory') return `DistributedLockModule.forRoot({ ${['store: memoryStore()', ...own].join(', ')} })`;
  const lines = [
    'DistributedLockModule.forRoot({',
    `${unit}store: redisStore({`,
    `${unit}${unit}url: process.env.REDIS_URL ?? ${quote}redis://localhost:6379${quote},`,
    `${unit}}),`,
    ...own.map((property) => `${unit}${property},`),
    '})',
  ];
  return lines.join(`\n${indent}`);
}

function missingImports(typescript: TypeScript, file: ts.SourceFile, setup: Setup): Insertion[] {
  const imports = file.statements.filter((statement) => typescript.isImportDeclaration(statement));
  const last = imports.at(-1);
  if (!last) throw new Unusual('it has no imports');
  const known = new Set(imports.flatMap(({ importClause }) => localNames(typescript, importClause)));
  const style = styleOf(typescript, file);
  const lines = Object.entries(namesFrom(setup))
    .map(([path, names]) => ({ path, names: names.filter((name) => !known.has(name)) }))
    .filter(({ names }) => names.length > 0)
    .map(({ path, names }) => importOf(names, path, style));
  const at = typescript.getTrailingCommentRanges(file.text, last.end)?.at(-1)?.end ?? last.end;
  return [{ at, text: lines.map((line) => `\n${line}`).join('') }];
}

function localNames(typescript: TypeScript, clause: ts.ImportClause | undefined): string[] {
  const bindings = clause?.namedBindings;
  return bindings && typescript.isNamedImports(bindings) ? bindings.elements.map(({ name }) => name.text) : [];
}
