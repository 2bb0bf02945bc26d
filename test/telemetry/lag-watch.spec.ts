import { LagWatch } from '../../lib/telemetry/lag-watch.js';

describe('the watch of the event loop', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('goes on when what it tells fails', async () => {
    let told = 0;
    const watch = new LagWatch(() => {
      told++;
      throw new Error('no registry');
    });
    watch.start();
    await jest.advanceTimersByTimeAsync(350);
    watch.stop();
    expect(told).toBe(3);
    expect(jest.getTimerCount()).toBe(0);
  });
});
