import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import { defineConfig, globalIgnores } from 'eslint/config';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';
import mutableFields from './scripts/lint/mutable-fields.mjs';
import sureTests from './scripts/lint/sure-tests.mjs';

const typescript = ['**/*.ts', '**/*.tsx'];
const nodeGlobals = [
  'AbortController',
  'AbortSignal',
  'Buffer',
  'clearImmediate',
  'clearInterval',
  'clearTimeout',
  'console',
  'fetch',
  'performance',
  'process',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
  'structuredClone',
  'URL',
];
const commonjsGlobals = ['__dirname', '__filename', 'exports', 'module', 'require'];
const readonly = (names) => Object.fromEntries(names.map((name) => [name, 'readonly']));

const exportStar = {
  selector: 'ExportAllDeclaration',
  message: 'Name what is exported: a barrel that says `export *` hides what the package promises.',
};
const monotonic = 'Time inside a process is monotonic: take it from core/util/clock.ts.';
// Of a suite that waits for real clocks, also what is beside it with the same name: sentinel.spec.ts, sentinel.child.ts.
const { faults } = JSON.parse(readFileSync(new URL('test/tiers.json', import.meta.url), 'utf8'));
const onRealClocks = faults.map((suite) => suite.replace(/spec\.ts$/, '*.ts'));
const bareBuiltins = builtinModules.map((name) => ({ name, message: `Write node:${name}: no package can stand in for that.` }));

export default defineConfig(
  // The examples and the apps of the matrix are compiled where they are installed: npm run nightly -- examples, and matrix.
  globalIgnores([
    '**/dist/',
    '.cache/',
    '**/node_modules/',
    'coverage/',
    'examples/',
    '**/*.generated.ts',
    'scripts/matrix/**/*.ts',
    'test/package/fake-locks.ts',
  ]),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },

  js.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: { globals: readonly(nodeGlobals) },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { sourceType: 'commonjs', globals: readonly(commonjsGlobals) },
  },

  {
    files: typescript,
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // `async` without `await` turns a synchronous throw into a rejection, which is what a method that promises must do.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['lib/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 300 }],
      'no-console': ['error', { allow: ['warn', 'error'] }],
      'no-restricted-imports': ['error', { paths: bareBuiltins }],
      'no-restricted-syntax': ['error', exportStar],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
    },
  },
  {
    files: ['lib/**/*.ts'],
    plugins: { classes: mutableFields },
    rules: { 'classes/max-mutable-fields': 'error' },
  },
  { files: ['lib/testing/store/*.ts'], rules: { '@typescript-eslint/unbound-method': 'off' } },
  {
    files: ['lib/core/**/*.ts', 'lib/primitives/**/*.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'Date', property: 'now', message: monotonic }],
      'no-restricted-syntax': [
        'error',
        exportStar,
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: monotonic },
      ],
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      // Tests look at what a caller without types would get, and take methods off their objects to spy on them.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['test/**/*.ts', 'lib/testing/store/**/*.ts'],
    // What the documents show, what the compiler alone reads, and load on real clocks.
    ignores: ['test/types/**', 'test/package/**', 'test/readme/!(*.spec).ts', 'test/chaos/**/!(*.spec).ts'],
    plugins: { tests: sureTests },
    rules: { 'tests/no-upper-bound-on-time': 'error', 'tests/no-short-lease': 'error' },
  },
  {
    files: ['test/**/*.spec.ts', 'test/contract/**/*.ts', 'lib/testing/store/*.contract.ts'],
    plugins: { tests: sureTests },
    rules: { 'tests/no-sleep': 'error' },
  },
  ...(onRealClocks.length > 0 ? [{ files: onRealClocks, rules: { 'tests/no-short-lease': 'off' } }] : []),
  prettier,
);
