import { processOf } from '../core/model/owner.js';
import { hostname, userInfo } from 'node:os';
import type { KeyHolder } from '../core/model/key-report.js';
import type { Command, Io, Session } from './command.js';
import { EXIT, Failure, usage } from './failure.js';
import { storeFlags } from './open-store.js';
import { age, printable, shellQuoted } from './output.js';
import { documentOf, inUse, labelOf, oldest } from './reports.js';

const FORCE = {
  owner: { type: 'string', help: 'who has it now, as `show` says; without it nothing is done' },
  token: { type: 'string', help: 'the last token, or that of the holder: a later caller is left alone' },
  reason: { type: 'string', help: 'for the logs, and for the error of the holder' },
  grace: { type: 'string', help: 'how long the holder has to release it once it was asked (5s)' },
  now: { type: 'boolean', help: 'take it without waiting for the holder: as --grace 0' },
  keep: { type: 'string', help: 'how long the key stays taken after that, for as long as the old holder may still work' },
  yes: { type: 'boolean', help: 'do not ask' },
} as const;

export const release: Command = {
  words: ['<key>'],
  summary: 'takes a key away from its holder, which is asked first',
  flags: FORCE,
  run: (session) => take(session, session.words[0] as string),
};

export const leader: Command = {
  words: ['<name>'],
  summary: 'ends the term of a leader with --depose, as `release` does',
  flags: { depose: { type: 'boolean', help: 'needs --reason' }, ...FORCE },
  async run(session) {
    const key = `${session.words[0]}-leader`;
    if (!session.flags.has('depose')) throw usage(`Say --depose to end the term. To see who leads: ndl show ${shellQuoted(key)}`);
    return take(session, key, true);
  },
};

/** The line that takes a key away. */
export function releaseLine(key: string, owner: string, flags: Session['flags']): string {
  const options = `--owner ${shellQuoted(owner)} --reason '…'${storeFlags(flags)}`;
  return `  ndl release ${key.startsWith('-') ? `${options} -- ${shellQuoted(key)}` : `${shellQuoted(key)} ${options}`}`;
}

/** @param mayChoose whether the present holder is meant where no `--owner` is given. */
async function take({ io, flags, out, locks, signal }: Session, key: string, mayChoose = false): Promise<number> {
  const reason = flags.text('reason');
  const [grace, keepFor, token] = [flags.has('now') ? 0 : flags.duration('grace'), flags.duration('keep'), flags.integer('token')];
  const opened = await locks();
  const report = await opened.inspect(key);
  const wanted = flags.text('owner') ?? (mayChoose ? report.holders[0]?.owner : undefined);
  // It says why a latch, or a value that no lock has written, is left alone.
  if (report.kind === 'foreign' || report.kind === 'count-down latch')
    await opened.forceRelease({ key: report.key }, { owner: '-', reason: '-' });
  if (report.holders.length === 0)
    throw new Failure(EXIT.free, `Nobody holds "${report.key}". ${await inUse(opened, `*${key}*`, out)}.`, 'FREE');
  const held = (holder: KeyHolder): string => `(${labelOf(holder)} for ${age(oldest(report.at, [holder]))})`;
  const known = report.holders.map((holder) => printable(`${holder.owner} ${held(holder)}`));
  if (wanted === undefined) throw usage(`"${report.key}" is held by ${known.join(', ')}. Name the owner that loses it: --owner.`);
  if (reason === undefined || reason === '') throw usage('Give a --reason: it is logged, and the holder gets it in its error.');
  const holder = report.holders.find(({ owner }) => owner === wanted);
  if (!holder && report.holderCount <= report.holders.length)
    throw new Failure(EXIT.changed, `"${report.key}" is held by ${known.join(', ')}, and not by ${wanted}.`, 'CHANGED');
  out.line(
    `before  held by ${wanted}${holder ? ` (${labelOf(holder)}) for ${age(oldest(report.at, [holder]))}` : ''}; ${report.waiterCount} wait`,
  );
  if (!flags.has('yes')) await confirm(`Take "${report.key}" away from ${printable(processOf(holder ?? wanted))}?`, io, signal);
  const by = operatorName();
  const reply = await opened.forceRelease({ key: report.key }, { owner: wanted, reason, by, token, grace, keepFor });
  const after = await opened.inspect({ key: report.key });
  out.json('release', { at: after.at, outcome: reply.outcome, holder: reply.holder, before: documentOf(report), after: documentOf(after) });
  if (reply.outcome === 'changed') {
    const present = `is held by ${printable(reply.holder ?? 'nobody')} by now, or its token has changed.`;
    throw new Failure(EXIT.changed, `Nothing was done: "${report.key}" ${present}`, 'CHANGED');
  }
  const now = after.holders[0] ? `held by ${after.holders[0].owner}` : 'free';
  out.line(`${reply.outcome === 'forced' ? 'taken by force' : 'released'}: ${now}`);
  return EXIT.ok;
}

/** Containers run as users without a name. */
export function operatorName(): string {
  let user = `uid ${process.getuid?.() ?? 'unknown'}`;
  try {
    user = userInfo().username;
  } catch {
    // It has none.
  }
  return `${user}@${hostname()}`;
}

async function confirm(question: string, { stdin, stderr }: Io, signal: AbortSignal): Promise<void> {
  if (!stdin.isTTY) throw usage('There is no terminal to ask at: add --yes.');
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: stdin, output: stderr });
  try {
    // Ctrl-C and the end of the input close it without an answer.
    const closed = new Promise<string>((resolve) => prompt.once('close', () => resolve('no')));
    const answer = await Promise.race([prompt.question(`${question} [y/N] `, { signal }), closed]);
    if (!/^y(es)?$/i.test(answer.trim())) throw usage('Nothing was done.');
  } finally {
    prompt.close();
  }
}
