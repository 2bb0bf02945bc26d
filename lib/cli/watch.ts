import { processOf } from '../core/model/owner.js';
import type { KeyEvent } from '../core/model/key-report.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { age } from './output.js';

const WORDS: Record<KeyEvent['event'], (event: KeyEvent) => string> = {
  acquired: ({ waited, fencingToken, adoptedFrom }) =>
    `${adoptedFrom ? `adopted from ${processOf(adoptedFrom)}` : 'taken'}${waited ? ` after ${age(waited)}` : ''}${fencingToken == null ? '' : `, token ${fencingToken}`}`,
  waiting: () => 'waits',
  passedOn: ({ to }) => `handed over${to === undefined ? '' : ` to ${to}`}`,
  released: ({ held }) => `released after ${age(held)}`,
  handedOver: ({ held }) => `handed over to another process after ${age(held)}`,
  timeout: ({ waited }) => `timed out after ${age(waited)}`,
  skipped: () => 'skipped',
  aborted: ({ waited }) => `aborted after ${age(waited)}`,
  failed: ({ reason }) => `failed: ${reason ?? ''}`,
  lost: ({ held, reason }) => `LOST after ${age(held)}: ${reason ?? ''}`,
  forced: ({ reason }) => `FORCED: ${reason ?? ''}`,
  dropped: ({ count }) => `${count} events are left out: they were too many to be sent`,
};

export const watch: Command = {
  words: ['[pattern]'],
  summary: 'what happens to keys, live: in processes that have waited for a key, or renewed one',
  flags: {},
  async run({ words, out, signal, locks }) {
    const opened = await locks();
    const [pattern = '*'] = words;
    try {
      for await (const event of opened.watch({ pattern, signal })) {
        out.json('watch', event);
        const { key, label, at } = event;
        // Another version of this library may report other events.
        const words = Object.hasOwn(WORDS, event.event) ? WORDS[event.event](event) : event.event;
        out.line([at.toISOString().slice(11, 23), out.key(key), words, [label, processOf(event)].filter(Boolean).join(' of ')].join('  '));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return EXIT.ok;
  },
};
