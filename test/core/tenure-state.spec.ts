import { LockLostError } from 'nestjs-distributed-lock/core';
import { ending, HELD, isRenewedIn, type TenureState } from '../../lib/core/holding/tenure-state.js';

const [first, second] = [new LockLostError('first'), new LockLostError('second')];
const ENDED: readonly TenureState[] = [{ is: 'released' }, { is: 'handedOver', owner: 'ticket', until: 1 }, { is: 'lost', error: first }];

it('a tenure is renewed while its holder is asked to end, until all leases are over, and then never again; its first reason counts', () => {
  const asked = ending(HELD, true, first);
  expect([HELD, asked, ending(asked, false), ending(ending(asked, false), true)].map(isRenewedIn)).toEqual([true, true, false, false]);
  expect(ending(asked, false, second)).toEqual({ is: 'ending', isRenewed: false, reason: first });
  expect(ending(ending(HELD, true), true, second)).toMatchObject({ isRenewed: true, reason: second });
});

it.each(ENDED)('a tenure that is $is stays so, and is not renewed', (state) => {
  expect([ending(state, false, second), isRenewedIn(state)]).toEqual([state, false]);
});
