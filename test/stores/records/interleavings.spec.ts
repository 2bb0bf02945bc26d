// Everything that can happen, in every order: who asks, whose request arrives, whose reply, what is lost, who dies. With the real recordQueue.
import { VOID } from '../../../lib/stores/records/record.table.js';
import { latchesHold, lease, leasesHold, pairsHold } from './model/play.js';
import type { Apply } from './model/step-table.js';

describe('whatever the order, a mutex on records keeps its promises (G2, G4, G6, G7, G8)', () => {
  pairsHold([0, 1]);
  leasesHold([
    ['0AR 0AR', { failures: 1 }, 600],
    ['0A 1QL', { failures: 1, crashes: 1 }, 500],
  ]);
});

describe('whatever the order, a semaphore of two permits keeps its promises', () => {
  leasesHold(
    [
      ['0QR2 1QQR1', {}, 100],
      ['0QR1 1QQR2', { crashes: 1 }, 300],
    ],
    2,
  );
});

describe('whatever the order, a count-down latch on records keeps its promises', () => {
  latchesHold([
    ['0SD 1D', 3, { failures: 1 }, 300],
    ['0S 1SD', 2, { failures: 1 }, 300],
    ['0SD 1D 1W', 2, {}, 100],
  ]);
});

describe('whatever the order, the same in observed time', () => {
  leasesHold([
    ['0QR 1QQR', { isObserved: true }, 100],
    ['0QNR 1QK', { isObserved: true }, 100],
    ['0AL 1QL', { isObserved: true, crashes: 1 }, 100],
  ]);
  leasesHold([['0QR1 1QQR2', { isObserved: true }, 100]], 2);
  latchesHold([['0SD 1D', 2, { isObserved: true, failures: 1 }, 100]]);
});

describe('the model finds', () => {
  const versionOf = (data: Parameters<Apply>[1], key: string): string => data.rows.get(key)?.version ?? VOID;

  it('a table that compares no versions', async () => {
    const apply: Apply = (change, data, make) => make((change.expected && { ...change, expected: versionOf(data, change.key) }) || change);
    await expect(lease('0AR 1AR', { apply })).rejects.toThrow('hold the key at the same time');
  });

  it('a table that drops messages', async () => {
    const apply: Apply = (change, _table, make) => make({ ...change, messages: [] });
    await expect(lease('0QR 1QQR', { apply })).rejects.toThrow('and not told');
  });
});
