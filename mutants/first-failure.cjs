// Ends Jest at the first test that fails: one is enough, and the others may wait long for something that the defect prevents.
const { TestEnvironment } = require('jest-environment-node');

module.exports = class extends TestEnvironment {
  handleTestEvent({ name }) {
    // run.mjs knows this status.
    if (name === 'test_fn_failure' || name === 'hook_failure') process.exit(42);
  }
};
