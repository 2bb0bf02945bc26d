// The larger scenarios of interleavings.spec.ts.
import { latchesHold, leasesHold, pairsHold } from './model/play.js';

describe('whatever the order, a mutex on records keeps its promises', () => {
  pairsHold([0, 0]);
  leasesHold([
    ['0AR 1AR', { isCold: true, pauses: 1 }, 1000],
    ['0QR 0Q 1QR', {}, 1000],
    ['0AR 1AR', { isObserved: true, failures: 1 }, 300],
    ['0QQR 0QQR', { failures: 1 }, 1000],
    ['0QNR 0QR', { failures: 1 }, 600],
    ['0AR 1AR', { failures: 1 }, 1000],
    ['0AL 1QL', { failures: 1 }, 800],
    ['0QQR 1QQR', { crashes: 1 }, 700],
    ['0AR 1AR', { crashes: 1, pauses: 1 }, 1000],
    ['0QNR 1QR', { pauses: 1 }, 1000],
    ['0A 0AR 1A 1AR', {}, 300],
    ['0Q 0Q 1QR 1A', {}, 300],
  ]);
});

describe('whatever the order, a semaphore of two permits keeps its promises', () => {
  leasesHold(
    [
      ['0QR1 1QR2 1A1', {}, 300],
      ['0AR1 1QL2', { failures: 1 }, 1000],
    ],
    2,
  );
});

describe('whatever the order, a count-down latch on records keeps its promises', () => {
  latchesHold([
    ['0SD 1WL', 1, { failures: 1 }, 300],
    ['0SD 1DWL', 2, { crashes: 1 }, 100],
  ]);
});
