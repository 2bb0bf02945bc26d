import { getEventListeners } from 'node:events';
import { onAbort, untilAborted } from '../../lib/core/util/abort.js';

describe('callbacks of a signal', () => {
  const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
  let caller: AbortController;
  beforeEach(() => (caller = new AbortController()));

  it('are called once each, in order, by one listener', () => {
    const called: number[] = [];
    for (let index = 0; index < 100; index++) onAbort(caller.signal, () => called.push(index));
    expect(listeners(caller.signal)).toBe(1);
    caller.abort();
    expect(called).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(listeners(caller.signal)).toBe(0);
  });

  it('leave no listener behind when the last one is forgotten', () => {
    const forget = [1, 2, 3].map(() => onAbort(caller.signal, () => undefined));
    forget[0]!();
    forget[1]!();
    expect(listeners(caller.signal)).toBe(1);
    forget[2]!();
    expect(listeners(caller.signal)).toBe(0);
  });

  it('can be forgotten more than once: others are still called', () => {
    const callback = jest.fn();
    const forget = onAbort(caller.signal, () => undefined);
    forget();
    onAbort(caller.signal, callback);
    forget();
    caller.abort();
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it('that are forgotten are not called', () => {
    const callback = jest.fn();
    onAbort(caller.signal, callback)();
    caller.abort();
    expect(callback).not.toHaveBeenCalled();
  });

  it('may forget each other', () => {
    const called: string[] = [];
    const forgetFirst = onAbort(caller.signal, () => {
      called.push('first');
      forgetFirst();
    });
    onAbort(caller.signal, () => called.push('second'));
    caller.abort();
    expect(called).toEqual(['first', 'second']);
  });
});

describe('a promise until a signal aborts', () => {
  it('is the promise when the signal is late or there is none, and keeps no listener', async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), undefined)).toBe(1);
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(untilAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('is nothing when the signal aborts first, and a later rejection harms nobody', async () => {
    const caller = new AbortController();
    let fail!: (reason: Error) => void;
    const pending = untilAborted(new Promise((_resolve, reject) => (fail = reject)), caller.signal);
    caller.abort();
    expect(await pending).toBeUndefined();
    fail(new Error('too late'));
  });
});
