import { after, idle, now, validity } from '../../lib/core/util/clock.js';

const DAY = 86_400_000;

describe('the validity of a lease', () => {
  it.each([
    [1, -1],
    [2, 0],
    [3, 1],
    [100, 98],
    [200, 198],
    [201, 201 - 2.01],
    [1_000, 990],
    [60_000, 59_400],
  ])('of %d ms is %d ms: less the larger of 2 ms and 1 %%', (ttl, valid) => {
    expect(validity(ttl)).toBeCloseTo(valid, 10);
  });
});

describe('time', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is monotonic: a wall clock that jumps has no say', () => {
    const before = now();
    jest.setSystemTime(0);
    jest.advanceTimersByTime(5);
    expect(now() - before).toBeCloseTo(5, 3);
  });

  it.each([0.4, 1, 9.6, 100])('a delay of %d ms is never cut short', (delay) => {
    const callback = jest.fn();
    after(delay, callback);
    jest.advanceTimersByTime(Math.ceil(delay) - 1);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it('a delay that is over ends at once', () => {
    const callback = jest.fn();
    after(-5, callback);
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it.each([2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, Infinity])('a delay of %d ms does not end early', (delay) => {
    const callback = jest.fn();
    after(delay, callback);
    jest.advanceTimersByTime(24 * DAY);
    expect(callback).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(1);
  });

  it('an idle delay does not keep the process alive', async () => {
    jest.useRealTimers();
    const ticking = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = ticking();
    const waiting = idle(20);
    expect(ticking()).toBe(before);
    // Something else must, or it would not end.
    await Promise.all([waiting, new Promise((resolve) => setTimeout(resolve, 40))]);
  });
});
