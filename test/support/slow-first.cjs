// The slow suites begin first: in a fresh clone Jest does not know them, and the last one would run alone.
const { default: Sequencer } = require('@jest/test-sequencer');
const { relative } = require('node:path');
const durations = require('../durations.json');

const secondsOf = ({ path }) => durations[relative(process.cwd(), path).replaceAll('\\', '/')] ?? 0;

module.exports = class extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((one, other) => secondsOf(other) - secondsOf(one));
  }
};
