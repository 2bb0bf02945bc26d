// Ends jest with the first test that fails: a mutant is killed by one, and the rest of a suite may wait long for what the mutant never does.
const { TestEnvironment } = require('jest-environment-node');

/** As mutants.mjs knows it. */
const KILLED = 42;

module.exports = class extends TestEnvironment {
  handleTestEvent({ name }) {
    if (name === 'test_fn_failure' || name === 'hook_failure') process.exit(KILLED);
  }
};
