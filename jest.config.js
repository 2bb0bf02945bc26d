import { availableParallelism } from 'node:os';

// Nest 12 is ESM-only and Jest cannot require() ESM on Node 20 and 22, so swc transpiles ours and these packages to CommonJS.
const esmPackages = ['@nestjs', 'file-type', 'strtok3', 'token-types', '@tokenizer', 'uint8array-extras', '@borewit'];

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  // Else a timer of Jest's own that is late prints a warning of what is deleted after each suite.
  testEnvironmentOptions: { globalsCleanup: 'off' },
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  setupFiles: ['<rootDir>/test/support/no-first-sweep.ts'],
  transform: {
    '^.+\\.(t|j|mj)s$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          keepClassNames: true,
        },
        module: { type: 'commonjs' },
      },
    ],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esmPackages.join('|')})/)`],
  moduleNameMapper: {
    '^nestjs-distributed-lock$': '<rootDir>/lib/index.ts',
    '^nestjs-distributed-lock/core$': '<rootDir>/lib/core.ts',
    '^nestjs-distributed-lock/(redis|memory|postgres|mysql|etcd|zookeeper|file|quorum)$': '<rootDir>/lib/stores/$1/$1.store.ts',
    '^nestjs-distributed-lock/records$': '<rootDir>/lib/stores/records/record.store.ts',
    '^nestjs-distributed-lock/fence-guard$': '<rootDir>/lib/fence-guard/fence-guard.ts',
    '^nestjs-distributed-lock/dashboard$': '<rootDir>/lib/dashboard/dashboard.module.ts',
    '^nestjs-distributed-lock/terminus$': '<rootDir>/lib/observe/lock-health.indicator.ts',
    '^nestjs-distributed-lock/prometheus$': '<rootDir>/lib/observe/prometheus.ts',
    '^nestjs-distributed-lock/testing$': '<rootDir>/lib/testing/testing.ts',
    '^nestjs-distributed-lock/testing/(jest|store)$': '<rootDir>/lib/testing/$1.ts',
    '^nestjs-distributed-lock/opentelemetry$': '<rootDir>/lib/observe/opentelemetry/open-telemetry.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  // The only limit on real time in a test: it is there for what hangs.
  testTimeout: 120_000,
  testSequencer: '<rootDir>/test/support/slow-first.cjs',
  // Most of a test is waiting.
  maxWorkers: 3 * availableParallelism(),
  // Each file leaves two AsyncLocalStorages behind, Jest's own and ours, and up to Node 22 every promise of the process carries an entry for each:
  // after fifty files a worker needs ten times as long for a promise, and stands still for seconds to collect them. So it begins anew.
  workerIdleMemoryLimit: '256MB',
};
