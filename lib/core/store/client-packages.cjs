// CommonJS, in both builds: an ES module finds what is installed beside it by nothing else.
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');

exports.supported = {
  ioredis: '^5.3.0 || ^6.0.0',
  redis: '^5.1.0 || ^6.0.0',
  pg: '^8.7.0',
  mysql2: '^2.3.3 || ^3.0.0',
  'node-zookeeper-client': '^1.1.3',
  'prom-client': '^13.0.0 || ^14.0.0 || ^15.0.0',
  '@opentelemetry/api': '^1.3.0',
};

// By its folder: not every package lets its package.json be loaded.
exports.installedVersion = (name) => {
  for (const folder of foldersOf(name)) {
    try {
      return JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')).version;
    } catch {
      // the next folder may have it
    }
  }
  return undefined;
};

function foldersOf(name) {
  // An ES module that a bundler has made has no __filename.
  return typeof __filename === 'string' ? (createRequire(__filename).resolve.paths(name) ?? []) : [];
}
