// Jest's default reporter, without a line for each suite that passes and prints nothing: the output of a green run fits on a screen.
const { DefaultReporter } = require('@jest/reporters');

module.exports = class extends DefaultReporter {
  printTestFileHeader(path, config, result) {
    if (result.numFailingTests > 0 || result.testExecError || result.console?.length > 0) super.printTestFileHeader(path, config, result);
  }
};
