import { checkOptions, oneOf } from '../../core/model/check-options.js';
import type { Telemetry } from '../../core/model/telemetry.js';
import { checkClient } from '../../core/store/check-client.js';
import { CallSpans, LiveHolds } from './call-spans.js';
import { hasMetrics, metricsHub } from './metrics.js';

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /** Whether spans have the key of the lock, and errors name it. A key can contain personal data. Metrics never have it. Default false. */
  keys?: boolean;
}

const CHECKS = { keys: oneOf(true, false) };

/**
 * Metrics and spans for OpenTelemetry: `DistributedLockModule.forRoot({ store, telemetry: openTelemetry() })`. It uses the providers that are
 * registered globally: start the SDK before the app is created. Without an SDK it does nothing.
 *
 * @throws {LockConfigError} when an option is wrong, or `@opentelemetry/api` is too old.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptions(options, 'openTelemetry', CHECKS);
  checkClient('openTelemetry', '@opentelemetry/api', hasMetrics);
  const { keys = false } = options;
  const live = new LiveHolds();
  return {
    observe(source) {
      const measured = metricsHub()?.observe(source);
      const calls = new CallSpans(source, live, keys);
      return {
        request: measured?.request,
        calls,
        stop: () => {
          measured?.stop();
          calls.stop();
        },
      };
    },
  };
}
