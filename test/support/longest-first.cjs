// The order of the test files: those that take long come first, so that no worker ends with one of them alone.
// `npx jest --json --outputFile=results.json && node test/support/durations.mjs results.json` measures them anew.
const { relative, sep } = require('node:path');
const Sequencer = require('@jest/test-sequencer').default;
const seconds = require('./durations.json');

module.exports = class extends Sequencer {
  sort(tests) {
    const secondsOf = ({ path, context }) => seconds[relative(context.config.rootDir, path).replaceAll(sep, '/')] ?? 0;
    return super.sort(tests).sort((a, b) => secondsOf(b) - secondsOf(a));
  }
};
