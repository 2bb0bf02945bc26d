import { transformSync } from '@swc/core';
import { join } from 'node:path';
import ts from 'typescript';
import * as rxjs from 'rxjs';
import * as library from 'nestjs-distributed-lock';

/** What the sources may import. */
const modules: Record<string, unknown> = { 'nestjs-distributed-lock': library, rxjs };

export interface Compiler {
  readonly name: string;
  /** To CommonJS, with the decorators of `experimentalDecorators` and metadata, and without a look at the types. */
  readonly legacy: (source: string) => string;
  /** To CommonJS, with the decorators of ECMAScript. */
  readonly standard: (source: string) => string;
}

const transpile = (source: string, decorators: ts.CompilerOptions): string =>
  ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, isolatedModules: true, ...decorators },
  }).outputText;

const swc = (source: string, transform: object): string =>
  transformSync(source, {
    swcrc: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true }, transform, keepClassNames: true },
    module: { type: 'commonjs' },
  }).code;

export const COMPILERS: readonly Compiler[] = [
  {
    name: 'tsc',
    legacy: (source) => transpile(source, { experimentalDecorators: true, emitDecoratorMetadata: true }),
    standard: (source) => transpile(source, { experimentalDecorators: false }),
  },
  {
    name: 'swc',
    legacy: (source) => swc(source, { legacyDecorator: true, decoratorMetadata: true }),
    standard: (source) => swc(source, { decoratorVersion: '2022-03' }),
  },
];

/** As {@link Compiler.legacy}, by a whole program of tsc that has read the types and does not mind if they are wrong: its metadata differs. */
export function compileWithTypes(sources: readonly string[]): string[] {
  const names = sources.map((_, index) => join(__dirname, `compiled-${index}.generated.ts`));
  const sourceOf = (file: string) => sources[names.indexOf(file)];
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.CommonJS,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
    lib: ['lib.es2022.d.ts'],
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => names.includes(file) || fileExists(file);
  host.getSourceFile = (file, ...rest) => {
    const source = sourceOf(file);
    return source === undefined ? getSourceFile(file, ...rest) : ts.createSourceFile(file, source, ts.ScriptTarget.ES2022);
  };
  const program = ts.createProgram(names, options, host);
  return names.map((name) => {
    let code = '';
    program.emit(program.getSourceFile(name), (_file, text) => (code = text));
    return code;
  });
}

/** Runs a compiled module; returns what it exports. */
export function run<Exports>(code: string): Exports {
  const exports = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- what a project with this compiler runs
  new Function('exports', 'require', code)(exports, (name: string) => modules[name]);
  return exports as Exports;
}
