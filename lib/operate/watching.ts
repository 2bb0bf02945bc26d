import { randomUUID } from 'node:crypto';
import { UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { KeyEvent } from '../core/model/key-report.js';
import { partsOf } from '../core/model/owner.js';
import { after } from '../core/util/clock.js';
import type { Operator } from './operator.js';
import { hear, send, toldOf, type News } from './messages.js';

/** Milliseconds between two messages that ask all processes to go on. */
const INTERVAL = 2_000;

/** What happens to keys in all processes that listen, until the signal aborts. @throws {UnsupportedPrimitiveError} where processes have no messages. */
export async function* watchAll(
  { bus, queues, store }: Operator,
  matches: RegExp,
  signal?: AbortSignal,
): AsyncGenerator<KeyEvent, void, void> {
  const { events } = queues.runtime;
  if (!bus || !(await bus.open(...events.ofInbox))) {
    throw new UnsupportedPrimitiveError(`The processes that use this ${store.name} store cannot be watched: they hear no messages.`);
  }
  const heard: KeyEvent[] = [];
  let wake = (): void => undefined;
  const stop = await hear(bus, 'ops:told', toldOf, events, (told) => {
    if (!('happenings' in told)) return;
    for (const event of eventsOf(told)) if (matches.test(event.key)) heard.push(event);
    wake();
  });
  const ask = (): void => {
    send(bus, 'ops', { id: randomUUID(), watch: true }).catch(() => undefined);
    timer = after(INTERVAL, ask);
  };
  let timer: NodeJS.Timeout | undefined;
  ask();
  const ends = (): void => wake();
  signal?.addEventListener('abort', ends);
  try {
    while (!signal?.aborted) {
      yield* heard.splice(0);
      if (heard.length === 0 && !signal?.aborted) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', ends);
    stop();
  }
}

function eventsOf(news: News): KeyEvent[] {
  const { app, host, pid } = partsOf(`${news.process}:-`) ?? { app: news.process, host: '', pid: 0 };
  return news.happenings.map((each) => ({ ...each, at: new Date(each.at), app, host, pid }));
}
