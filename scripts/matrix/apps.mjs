// What is installed together, and which programs then run there.
import { newestPeers, oldestPeers, peerDependencies } from '../packed.mjs';

const PLATFORM = '@nestjs/platform-express';
const SMOKE = [
  { title: 'ESM', file: 'esm/http.mjs' },
  { title: 'CommonJS', file: 'cjs/http.cjs' },
];
const COPIES = { title: 'an ESM app with a CommonJS library, and two installations', file: 'esm/copies.mjs' };
const CLIENTS = [
  { title: 'ESM', file: 'esm/redis-clients.mjs' },
  { title: 'CommonJS', file: 'cjs/redis-clients.cjs' },
];
const jest = { file: 'node_modules/jest/bin/jest.js', modules: true };

/** The test runners that a new application of a Nest version gets, with the packages that they need. */
const RUNNERS = {
  '^11.0.0': {
    packages: { jest: '^29.7.0', 'ts-jest': '^29.2.5', '@types/jest': '^29.5.14', typescript: '^5.7.3' },
    programs: [{ title: 'Jest, CommonJS', package: 'jest', file: jest.file, cwd: 'cjs/runners', args: ['--config', 'jest.config.json'] }],
  },
  '^12.0.0': {
    packages: {
      ...{ jest: '^30.0.0', 'ts-jest': '^29.4.0', '@types/jest': '^30.0.0', typescript: '^6.0.2' },
      ...{ vitest: '^4.1.2', 'vite-tsconfig-paths': '^5.1.4' },
    },
    programs: [
      { title: 'Vitest', package: 'vitest', file: 'node_modules/vitest/vitest.mjs', cwd: 'esm/runners', args: ['run'] },
      { title: 'Jest, ESM', package: 'jest', ...jest, cwd: 'esm/runners', args: ['--config', 'jest-esm.config.json'] },
      {
        title: 'Jest, CommonJS',
        package: 'jest',
        ...jest,
        cwd: 'cjs/runners',
        args: ['--config', 'jest.config.json'],
        // Before, Jest cannot require() the ES modules that Nest 12 consists of.
        since: 24,
      },
    ],
  },
};

function nestApp(title, peers, runners = { packages: {}, programs: [] }) {
  const packages = { ...peers, [PLATFORM]: peers['@nestjs/core'], ...runners.packages };
  if (runners.programs.length) Object.assign(packages, { '@nestjs/testing': peers['@nestjs/core'], '@types/node': '^24.0.0' });
  const named = ['@nestjs/core', 'reflect-metadata', 'rxjs', 'ioredis'];
  return { title, packages, named, programs: [...SMOKE, COPIES, ...runners.programs] };
}

function redisApp(title, version) {
  return { title, packages: { ioredis: version }, named: ['ioredis'], programs: CLIENTS };
}

const ranges = (peer) => peerDependencies[peer].split(' || ');
const major = (range) => /\d+/.exec(range)[0];

export const APPS = [
  nestApp('the oldest peers', oldestPeers),
  ...ranges('@nestjs/core').map((range) =>
    nestApp(`Nest ${major(range)}`, { ...newestPeers, '@nestjs/common': range, '@nestjs/core': range }, RUNNERS[range]),
  ),
  redisApp('the oldest ioredis', oldestPeers.ioredis),
  ...ranges('ioredis').map((range) => redisApp(`ioredis ${major(range)}`, range)),
];
