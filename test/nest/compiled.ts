import { transformSync } from '@swc/core';
import ts from 'typescript';
import * as rxjs from 'rxjs';
import * as library from 'nestjs-distributed-lock';

/** What the sources may import. */
const modules: Record<string, unknown> = { 'nestjs-distributed-lock': library, rxjs };

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

/** To CommonJS, without a look at the types: `legacy` with `experimentalDecorators` and metadata, `standard` with the decorators of ECMAScript. */
export const COMPILERS = [
  {
    name: 'tsc',
    legacy: (source: string) => transpile(source, { experimentalDecorators: true, emitDecoratorMetadata: true }),
    standard: (source: string) => transpile(source, { experimentalDecorators: false }),
  },
  {
    name: 'swc',
    legacy: (source: string) => swc(source, { legacyDecorator: true, decoratorMetadata: true }),
    standard: (source: string) => swc(source, { decoratorVersion: '2022-03' }),
  },
];

/** Runs a compiled module; returns what it exports. */
export function run<Exports>(code: string): Exports {
  const exports = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- what a project with this compiler runs
  new Function('exports', 'require', code)(exports, (name: string) => modules[name]);
  return exports as Exports;
}
