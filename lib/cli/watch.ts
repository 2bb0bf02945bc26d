import { processOf } from '../core/model/owner.js';
import type { KeyEvent } from '../core/model/key-report.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { age } from './output.js';

const WORDS: Record<KeyEvent['event'], (event: KeyEvent) => string> = {
  lost: ({ held, reason }) => `LOST after ${age(held)}: ${reason ?? ''}`,
  timeout: ({ waited }) => `timed out after ${age(waited)}`,
  failed: ({ reason }) => `failed: ${reason ?? ''}`,
  forced: ({ by, reason }) => `FORCED by ${by ?? 'an operator'}: ${reason ?? ''}`,
  skipped: () => 'skipped',
};

export const watch: Command = {
  words: ['[pattern]'],
  summary: 'losses, timeouts, failures, forced releases and skipped ticks: the last ones of each process, and those to come',
  flags: {},
  async run({ words, out, signal, locks }) {
    const opened = await locks();
    const [pattern = '*'] = words;
    try {
      for await (const event of opened.watch({ pattern, signal })) {
        out.json('watch', event);
        const { key, label, at, count } = event;
        // Another version of this library may report other events.
        const words = Object.hasOwn(WORDS, event.event) ? WORDS[event.event](event) : event.event;
        const times = count > 1 ? ` (${count} times within a minute)` : '';
        const who = [label, processOf(event)].filter(Boolean).join(' of ');
        out.line([at.toISOString().slice(0, 23).replace('T', ' '), out.key(key), words + times, who].join('  '));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return EXIT.ok;
  },
};
