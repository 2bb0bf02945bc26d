// Ends Jest at the first test that fails: one is enough, and the others may wait long for something that the defect prevents.
const { TestEnvironment } = require('jest-environment-node');

module.exports = class extends TestEnvironment {
  handleTestEvent({ name, promise }) {
    // An error that nobody catches is one of no test where it comes from a socket. A rejection may still be handled.
    const isUncaught = name === 'error' && !promise;
    // run.mjs knows this status.
    if (isUncaught || name === 'test_fn_failure' || name === 'hook_failure') process.exit(42);
  }
};
