import { select } from '../history/read.js';
import { groupBy } from './calls.js';
import type { Said } from '../history/entry.js';
import type { Oracle, Violation } from './oracle.js';

type Write = Said<'wrote'>;

/**
 * G1, G2 measured: two valid writes over the same value of the unguarded counter mean that one of them is lost.
 *
 * A process can be stopped between its check and its write. Such a write may have been done after the lease's end, which no lock prevents. The
 * worker asks for the time again after the write. One that ended too late is not judged. It may have put an old value back, so what was read before
 * it is not compared with what was read after it.
 */
export const lostUpdate: Oracle = (history, { lossy }) => {
  if (lossy) return [];
  const byKey = groupBy(select(history, 'wrote'), ({ key }) => key);
  const kinds = new Map(select(history, 'asked').map(({ id, kind }) => [id, kind]));
  return [...byKey.values()].flatMap(lostOfKey).map(({ id, ...violation }) => ({ ...violation, kind: kinds.get(id) }));
};

function lostOfKey(writes: readonly Write[]): (Violation & { id: string })[] {
  const late = writes.filter((write) => !isJudged(write));
  const seen = new Map<string, Write>();
  const violations: (Violation & { id: string })[] = [];
  for (const write of writes.filter(isJudged)) {
    // Which of the late writes can this one have seen? Where that is not clear, it is left out.
    if (late.some(({ t, done }) => write.readAt >= t && write.readAt <= done)) continue;
    const era = late.filter(({ done }) => done < write.readAt).length;
    const version = `${era}/${write.read}`;
    const other = seen.get(version);
    if (other && other.id !== write.id) {
      const what = `${write.id} and ${other.id} both wrote ${write.read + 1}, ${(write.t - other.t).toFixed(1)} ms apart: one update is lost`;
      violations.push({ id: write.id, oracle: 'lost update', guarantee: 'G2', key: write.key, at: write.t, what });
    }
    seen.set(version, write);
  }
  return violations;
}

function isJudged({ t, remaining, done }: Write): boolean {
  return done <= t + remaining;
}
