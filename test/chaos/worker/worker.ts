// One process that uses the locks: what it does is in the loads, what it notes is its history.
import { Redis } from 'ioredis';
import { join } from 'node:path';
import { watchLag } from '../history/lag-watch.js';
import { HistoryWriter } from '../history/writer.js';
import { Random } from '../random.js';
import { openStores } from './open.js';
import { Context } from './context.js';
import { FencedCounter } from './fenced-counter.js';
import { noteLeftovers, resources } from './leftovers.js';
import { runLoads } from './loads.js';
import type { ToWorker, WorkerOrder } from './order.js';
import { noteTrouble } from './trouble.js';

const order = JSON.parse(process.argv[2]!) as WorkerOrder;
const history = new HistoryWriter(join(order.folder, `${order.id}.jsonl`), order.id);
noteTrouble(history);
history.write({ e: 'started', pid: process.pid });
const random = new Random(order.seed);
const stopping = new AbortController();
const lag = watchLag(history);
const resource = new Redis(order.resource);
// The channel to the parent counts as a handle once somebody listens.
process.on('message', (message: ToWorker) => {
  if (message.type === 'busy') block(message.ms);
  else void stop();
});
await resource.ping();
const before = resources();
const opened = await openStores(order, random.fork('stores'), history);
const context = new Context(order, random.fork('load'), history, opened.locks, resource, new FencedCounter(resource), stopping.signal);

const running = runLoads(context);
process.send?.({ type: 'ready' });

/** The event loop stands still, as in a long computation. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

async function stop(): Promise<void> {
  stopping.abort();
  // Half of the workers let their callers end first, the others close under them.
  if (random.fork('stop').chance(0.5)) await Promise.race([running, context.pause(1_500)]);
  history.write({ e: 'closing', bound: opened.closeBound });
  await Promise.all(opened.locks.map((locks) => locks.close()));
  history.write({ e: 'closed' });
  await running;
  const listeners = opened.listeners();
  await opened.closeLent();
  await noteLeftovers(history, before, listeners);
  clearInterval(lag);
  context.close();
  resource.disconnect();
  process.disconnect();
}
