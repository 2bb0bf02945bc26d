import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import type { Sampler, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { AlwaysOnSampler, BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { parseCollected } from './scrape.js';

/**
 * A whole OpenTelemetry SDK, registered for this process, which exports to its memory.
 * @param options.processors more than the one that keeps the spans.
 */
export function startSdk({ sampler = new AlwaysOnSampler(), processors = [] }: { sampler?: Sampler; processors?: SpanProcessor[] } = {}) {
  const exporter = new InMemorySpanExporter();
  const traces = new BasicTracerProvider({ sampler, spanProcessors: [...processors, new SimpleSpanProcessor(exporter)] });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider({ readers: [reader] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(traces);
  metrics.setGlobalMeterProvider(meters);
  return {
    /** The spans that have ended, the first one first. */
    spans: () => exporter.getFinishedSpans(),
    async scrape() {
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw errors[0];
      return parseCollected(resourceMetrics);
    },
    /** Runs the work in a span of this name. */
    inSpan: <T>(name: string, work: () => Promise<T>) =>
      trace.getTracer('test').startActiveSpan(name, async (span) => {
        try {
          return await work();
        } finally {
          span.end();
        }
      }),
    async stop() {
      await Promise.all([traces.shutdown(), meters.shutdown()]);
      trace.disable();
      metrics.disable();
      context.disable();
    },
  };
}
