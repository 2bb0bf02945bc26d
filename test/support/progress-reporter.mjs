// What `npm test` prints: a line with the first suite that is done and with each tenth of them, the name of a suite that fails at once, and all failures in full at the end.
import { getConsoleOutput } from '@jest/console';
import { SummaryReporter } from '@jest/reporters';
import { relative } from 'node:path';

export default class extends SummaryReporter {
  constructor(config) {
    super(config, { summaryThreshold: 0 });
  }

  onRunStart(results, options) {
    super.onRunStart(results, options);
    this.start = performance.now();
  }

  /** Jest begins with the suites of which it does not know how long they take. */
  onTestFileStart({ duration }) {
    if (this.isStarted) return;
    this.isStarted = true;
    if (duration !== undefined) this.log(`About ${inWords(this._estimatedTime)}.`);
  }

  onTestResult({ path, context: { config } }, result, { numTotalTestSuites: total, numFailedTestSuites, numPassedTestSuites }) {
    if (result.failureMessage) this.log(`FAILED ${relative(config.rootDir, path)}`);
    if (result.console)
      this.log(`${relative(config.rootDir, path)} prints:\n${getConsoleOutput(result.console, config, this._globalConfig)}`);
    const done = numPassedTestSuites + numFailedTestSuites;
    if (done > 1 && Math.floor((done * 10) / total) === Math.floor(((done - 1) * 10) / total)) return;
    const failed = numFailedTestSuites > 0 ? `, ${numFailedTestSuites} failed` : '';
    this.log(`${done} of ${total} suites after ${inWords((performance.now() - this.start) / 1000)}${failed}`);
  }
}

function inWords(seconds) {
  const rounded = Math.round(seconds);
  return rounded < 100 ? `${rounded} s` : `${(rounded / 60).toFixed(1)} minutes`;
}
