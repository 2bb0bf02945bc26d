// Jest's `--filter` of scripts/test.mjs: the suites that TEST_SUITES names, by their paths from the project's root.
const { relative, sep } = require('node:path');
const chosen = new Set(process.env.TEST_SUITES.split(' '));

module.exports = (paths) => ({ filtered: paths.filter((path) => chosen.has(relative(process.cwd(), path).replaceAll(sep, '/'))) });
