import { LockLostError } from 'nestjs-distributed-lock/core';
import { ending, HELD, isRenewedIn, type TenureState } from '../../lib/core/holding/tenure-state.js';

const [first, second] = [new LockLostError('first'), new LockLostError('second')];
const FINAL: readonly TenureState[] = [
  { is: 'released' },
  { is: 'handedOver', owner: 'app@host:1:ticket', until: 1 },
  { is: 'lost', error: first },
];

describe('a tenure that ends with its turn', () => {
  it('is renewed while its holder is asked to end, until the maxHold of its leases is over, and never again', () => {
    expect(isRenewedIn(HELD)).toBe(true);
    const asked = ending(HELD, true, first);
    expect(isRenewedIn(asked)).toBe(true);
    const over = ending(asked, false);
    expect(isRenewedIn(over)).toBe(false);
    expect(isRenewedIn(ending(over, true, second))).toBe(false);
  });

  it('ends for the first reason', () => {
    expect(ending(ending(HELD, true, first), false, second)).toEqual({ is: 'ending', isRenewed: false, reason: first });
    expect(ending(ending(HELD, true), true, second)).toEqual({ is: 'ending', isRenewed: true, reason: second });
  });

  it.each(FINAL)('stays what it is when it has ended, and is renewed no more: $is', (state) => {
    expect(ending(state, false, second)).toBe(state);
    expect(isRenewedIn(state)).toBe(false);
  });
});
