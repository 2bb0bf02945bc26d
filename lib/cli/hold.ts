import { holdByHand } from '../operate/hold-by-hand.js';
import type { Command } from './command.js';
import { EXIT, Failure, usage } from './failure.js';
import { age } from './output.js';
import { releaseLine } from './release.js';

export const hold: Command = {
  words: ['<key>'],
  summary: 'keeps a free key taken for a while: nobody deploys until then',
  flags: {
    for: { type: 'string', help: 'how long, such as 2h' },
    reason: { type: 'string', help: 'shown to others as the holder' },
  },
  async run({ words: [key = ''], flags, out, locks }) {
    const [length, reason = ''] = [flags.duration('for'), flags.text('reason')];
    if (length === undefined || length === 0) throw usage('Say for how long: --for 2h.');
    if (reason.trim() === '') throw usage('Give a --reason, which is shown to others as the holder.');
    const opened = await locks();
    const name = opened.mutex(key).key;
    const owner = await holdByHand(opened.store, name, length, `ndl:${reason.trim()}`);
    if (owner === null) throw new Failure(EXIT.conflict, `"${key}" is taken: nothing was done.`, 'TAKEN');
    out.json('hold', { key: name, owner, until: new Date(Date.now() + length) });
    out.line(`"${name}" is held for ${age(length)}, by ${owner}. To free it before that:`);
    out.line(releaseLine(key, owner, flags));
    return EXIT.ok;
  },
};
