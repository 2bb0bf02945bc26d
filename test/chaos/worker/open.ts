import { Locks } from '../../../lib/core.js';
import { breakOf } from '../breaks.js';
import type { HistoryWriter } from '../history/writer.js';
import type { Random } from '../random.js';
import { stores } from '../stores.js';
import type { WorkerOrder } from './order.js';

const SHUTDOWN_TIMEOUT = 3_000;

export interface Opened {
  readonly locks: Locks[];
  /** ms that closing may take */
  readonly closeBound: number;
  /** listeners that a lent client has more than before it was lent */
  readonly listeners: () => string[];
  /** closes the clients that the worker made itself */
  closeLent(): Promise<void>;
}

/** One or two `Locks` with options of their own, each over a store of its own. */
export async function openStores(order: WorkerOrder, random: Random, history: HistoryWriter): Promise<Opened> {
  const { open } = await stores[order.store]!.worker();
  const broken = order.break === undefined ? undefined : breakOf(order.break);
  const opened = Array.from({ length: random.int(1, 2) }, (_, i) => {
    const own = random.fork(i);
    return open(order.target, { requestTimeout: own.pick([300, 600, 1_000]), random: own, breakTable: broken?.wrapTable });
  });
  const locks = opened.map(({ store, detail = '' }) => {
    history.write({ e: 'event', name: 'opened', key: '', detail: `${detail} with a requestTimeout of ${store.requestTimeout} ms` });
    const one = new Locks(broken?.wrap?.(store) ?? store, {
      logger: { warn: () => undefined, error: (detail) => history.write({ e: 'trouble', what: 'logged', detail }) },
      shutdownTimeout: SHUTDOWN_TIMEOUT,
      localQueue: { handOvers: random.int(1, 32), time: random.pick([0, 10, 50, 200]) },
    });
    listen(one, history);
    return one;
  });
  return {
    locks,
    closeBound: SHUTDOWN_TIMEOUT + 5 * Math.max(...locks.map(({ store }) => store.requestTimeout)),
    listeners: () => opened.flatMap(({ listeners }) => listeners?.() ?? []),
    closeLent: async () => void (await Promise.all(opened.map(async ({ closeLent }) => closeLent?.()))),
  };
}

function listen(locks: Locks, history: HistoryWriter): void {
  const note = (name: string, key: string, detail = ''): void => history.write({ e: 'event', name, key, detail });
  locks.on('lost', ({ key, owner, error }) => note('lost', key, `${owner}: ${error.message}`));
  locks.on('unknown', ({ key, owner, operation, error }) => note('unknown', key, `${operation} of ${owner}: ${error.message}`));
  locks.on('lag', ({ key, lag }) => note('lag', key, `${Math.round(lag)} ms`));
}
