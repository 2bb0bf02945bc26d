import type { Command } from './command.js';
import { EXIT, Failure, usage } from './failure.js';
import { age } from './output.js';
import { releaseLine } from './release.js';

export const hold: Command = {
  words: ['<key>'],
  summary: 'keeps a free key taken for a while: nobody deploys until then',
  flags: {
    for: { type: 'string', help: 'how long, such as 2h' },
    reason: { type: 'string', help: 'who is refused finds it in the name of the holder' },
  },
  async run({ words: [key = ''], flags, out, locks }) {
    const [length, reason = ''] = [flags.duration('for'), flags.text('reason')];
    if (length === undefined || length === 0) throw usage('Say for how long: --for 2h.');
    if (reason.trim() === '') throw usage('Give a --reason: who is refused finds it in the name of the holder.');
    // Names of apps have no spaces.
    const app = `ndl:${reason.trim().replaceAll(/[\s\p{Cc}@]+/gu, '-')}`.slice(0, 100);
    const lease = await (await locks({ app })).tryAcquire(key, { minHold: length });
    if (!lease) throw new Failure(EXIT.conflict, `"${key}" is taken: nothing was done.`, 'TAKEN');
    const until = new Date(Date.now() + length);
    await lease.release();
    out.json('hold', { key: lease.key, owner: lease.owner, until });
    out.line(`"${lease.key}" is held for ${age(length)}, by ${lease.owner}. To free it before that:`);
    out.line(releaseLine(key, lease.owner, flags));
    return EXIT.ok;
  },
};
