import { processOf } from '../core/model/owner.js';
import { heldWhileWaiting, type Deadlock } from '../operate/wait-graph.js';
import type { KeyReport } from '../core/model/key-report.js';
import type { Command } from './command.js';
import { EXIT } from './failure.js';
import { age, type Output } from './output.js';
import { releaseLine } from './release.js';
import { documentOf, inUse, labelOf, listed, oldest, withHeld } from './reports.js';

export const show: Command = {
  words: ['<key>'],
  summary: 'all that is known of one key',
  flags: {},
  async run({ words, flags, out, locks }) {
    const [key = ''] = words;
    const opened = await locks();
    const report = await opened.inspect(key);
    // Enough to find the deadlocks of two.
    const deadlocks = opened.waitGraph(await withHeld(opened, [report]));
    out.json('show', { at: report.at, key: documentOf(report), deadlocks });
    print(out, report);
    const [holder] = report.holders;
    if (holder && report.kind !== 'foreign') {
      out.line();
      out.line(`To take it away from ${processOf(holder)}:`);
      out.line(releaseLine(key, holder.owner, flags));
    }
    for (const deadlock of deadlocks) {
      out.line();
      out.line(`  ${inWords(deadlock, out)}`, 'deadlock');
    }
    if (report.kind !== 'free' || report.waiterCount > 0) return EXIT.ok;
    if (!out.isJson) out.line(`${await inUse(opened, `*${key}*`, out)}.`);
    return EXIT.free;
  },
};

function print(out: Output, report: KeyReport): void {
  const { key, kind, at, fencingToken, permits, count, remaining, holders, holderCount, waiters, waiterCount } = report;
  out.line(`key      ${out.key(key)}`);
  const size = permits === undefined ? '' : ` of ${permits} permits`;
  out.line(`kind     ${kind}${size}${count === undefined ? '' : `, ${count} left to count down`}`);
  if (fencingToken !== null) out.line(`token    ${fencingToken}, the last one that was given`);
  if (kind === 'count-down latch' || kind === 'foreign') out.line(`ends in  ${age(remaining)}`);
  for (const holder of holders) {
    const silent = holder.report ? '' : 'no answer from its process: blocked, or it has not renewed a lease yet';
    const state = holder.phase === 'kept' ? 'released, and kept until its minHold is over' : silent;
    const until = holder.report?.handedOverUntil;
    const since = until ? `until ${until.toISOString()}, not adopted yet` : `held for ${age(oldest(at, [holder]))}`;
    const facts = listed([labelOf(holder), since, `ends in ${age(holder.remaining)}`, permitsOf(holder.permits), state]);
    out.line(`holder   ${until ? `handed over by ${processOf(holder)},` : `${processOf(holder)} `} ${facts}`);
  }
  if (holderCount > holders.length) out.line(`         and ${holderCount - holders.length} more`);
  if (waiterCount > 0) out.line(`waiters  ${waiterCount}, the first for ${age(oldest(at, waiters))}`);
  for (const [index, waiter] of waiters.entries()) {
    const calls = waiter.report?.[0]?.waiting ?? 1;
    const keys = [...new Set(heldWhileWaiting(waiter).map((held) => out.key(held.key)))];
    const facts = [labelOf(waiter), age(oldest(at, [waiter])), calls > 1 ? `${calls} callers` : '', permitsOf(waiter.permits)];
    const state = [keys.length === 0 ? '' : `holds ${keys.join(', ')}`, waiter.isHeard ? '' : 'its process is gone'];
    out.line(`  ${String(index + 1).padStart(3)}    ${processOf(waiter)}  ${listed([...facts, ...state])}`);
  }
  if (kind === 'free') out.line('Nobody holds it.');
}

function permitsOf(permits: number): string {
  return permits === Infinity ? '' : `${permits} permits`;
}

export function inWords({ members, endsIn, advice }: Deadlock, out: Output): string {
  const parts = members.map((member) => {
    const { label, holds, waitsFor } = member;
    return `${label === undefined ? '' : `${label} of `}${processOf(member)} holds ${holds.map((key) => out.key(key)).join(', ')} and waits for ${out.key(waitsFor)}`;
  });
  const end = endsIn === null ? 'No wait of them ends.' : `The first wait ends in ${age(endsIn)}.`;
  return `${parts.join('; ')}. ${end} ${advice}`;
}
