// What telemetry costs: CPU and allocated bytes of a pair (acquire, release) on the memory store, off and with each adapter.
// Each has a process of its own, because an OpenTelemetry SDK is registered for a whole process. They run in turns.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { begin } from './measure/begin.mjs';
import { median } from './measure/statistics.mjs';
import { ROUNDS, rounds } from './measure/rounds.mjs';

const PAIRS = 50_000;
const FEW = 100;
const KEY = 'stock:apple';
const options = { label: 'StockService.reduce', keyTimeout: 10_000 };

/** Each returns the telemetry of its process. */
const variants = {
  off: () => undefined,
  'off again': () => undefined,
  prometheus: async () => {
    const { prometheus } = await import('nestjs-distributed-lock/prometheus');
    const { Registry } = await import('prom-client');
    return prometheus(new Registry());
  },
  'OpenTelemetry without SDK': async () => (await import('nestjs-distributed-lock/opentelemetry')).openTelemetry(),
  'OpenTelemetry, sampled spans': async () => {
    await registerTraces();
    return (await import('nestjs-distributed-lock/opentelemetry')).openTelemetry();
  },
  'OpenTelemetry, metrics': async () => {
    await registerMetrics();
    return (await import('nestjs-distributed-lock/opentelemetry')).openTelemetry();
  },
};

async function registerTraces() {
  const { context, trace } = await import('@opentelemetry/api');
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  const exporter = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => undefined };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] }));
}

async function registerMetrics() {
  const { metrics } = await import('@opentelemetry/api');
  const { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } =
    await import('@opentelemetry/sdk-metrics');
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** In a child: makes pairs when it is asked to, and tells their cost. */
async function serve(variant, dist) {
  const entry = (path, name) => import(dist ? pathToFileURL(`${dist}/esm/${path}`).href : name);
  const { Locks } = await entry('core.js', 'nestjs-distributed-lock/core');
  const { memoryStore } = await entry('stores/memory/memory.store.js', 'nestjs-distributed-lock/memory');
  const telemetry = dist ? undefined : await variants[variant]();
  const locks = new Locks(memoryStore(), telemetry ? { telemetry, logger: false } : { logger: false });
  const lock = locks.mutex(KEY);
  process.on('message', async () => {
    globalThis.gc();
    const cpu = process.cpuUsage();
    for (let pair = 0; pair < PAIRS; pair++) await (await lock.acquire(options)).release();
    const { user, system } = process.cpuUsage(cpu);
    const bytes = await bytesOf(async () => (await lock.acquire(options)).release());
    process.send({ cpu: (user + system) / PAIRS, bytes });
  });
  process.send('ready');
}

/** Bytes that one run allocates: so few runs that nothing is collected meanwhile. */
async function bytesOf(work) {
  const samples = [];
  for (let sample = 0; sample < 51; sample++) {
    const before = process.memoryUsage().heapUsed;
    for (let run = 0; run < FEW; run++) await work();
    samples.push((process.memoryUsage().heapUsed - before) / FEW);
  }
  return median(samples);
}

async function start(variant, dist = '') {
  const child = fork(fileURLToPath(import.meta.url), ['--child', variant, dist], { execArgv: ['--expose-gc'] });
  await once(child, 'message');
  return child;
}

const [first, ...others] = process.argv.slice(2);
if (first === '--child') await serve(...others);
else {
  const { base } = await begin('telemetry [options]\n  --base <folder>   dist of another build, to compare with', { texts: { base: '' } });
  const children = {};
  if (base) children.base = await start('off', base);
  for (const variant of Object.keys(variants)) children[variant] = await start(variant);
  const results = await rounds(children, async (child) => {
    child.send('go');
    return (await once(child, 'message'))[0];
  });
  for (const child of Object.values(children)) child.kill();
  const reference = results[base ? 'base' : 'off'];
  console.log(`CPU and allocated bytes of a pair on the memory store, ${ROUNDS} rounds of ${PAIRS}, median of rounds`);
  for (const [name, all] of Object.entries(results)) {
    const over = median(all.map(({ cpu }, round) => cpu - reference[round].cpu));
    const bytes = median(all.map(({ bytes }) => bytes));
    const own = median(all.map(({ cpu }) => cpu));
    console.log(`  ${name.padEnd(30)} ${own.toFixed(2)} µs, ${over.toFixed(2)} over; ${bytes.toFixed(0)} bytes`);
  }
}
