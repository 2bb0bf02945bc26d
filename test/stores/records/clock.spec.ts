import { RecordClock } from '../../../lib/stores/records/record.clock.js';

describe('the clock of a table', () => {
  /** Ours, in milliseconds. */
  let ours: number;
  /** By how much the table's is later. */
  let offset: number;
  let clock: RecordClock;

  beforeEach(() => {
    jest.spyOn(performance, 'now').mockImplementation(() => ours);
    [ours, offset] = [5_000, 1_000_000];
    clock = new RecordClock();
  });
  afterEach(() => jest.restoreAllMocks());

  /** A request that is so long on its way, and its reply. */
  const exchange = (there: number, back: number): boolean => {
    const sentAt = ours;
    ours += there;
    const told = ours + offset;
    ours += back;
    const { basis } = clock;
    clock.hear(told, sentAt);
    return !clock.isSetForward(told, basis);
  };

  it.each([
    [0, 0],
    [50, 0],
    [0, 50],
    [30, 70],
  ])('is between two bounds, by a request of %d ms and a reply of %d', (there, back) => {
    exchange(there, back);
    for (const later of [0, 1_000]) {
      ours += later;
      const { early, late } = clock.time;
      expect(early).toBe(ours + offset - back);
      expect(late).toBe(ours + offset + there);
    }
  });

  it('is known for ten seconds', () => {
    expect(clock.isKnown).toBe(false);
    exchange(1, 1);
    ours += 9_999;
    expect(clock.isKnown).toBe(true);
    ours += 1;
    expect(clock.isKnown).toBe(false);
  });

  it('is unknown after an error: another server may answer next', () => {
    exchange(1, 1);
    clock.forget();
    expect(clock.isKnown).toBe(false);
  });

  it('is known better by a faster exchange, not worse by a slower one, unless that is a second later', () => {
    exchange(10, 10);
    exchange(2, 3);
    exchange(50, 50);
    expect(clock.time).toMatchObject({ early: ours + offset - 3, late: ours + offset + 2 });
    ours += 1_000;
    exchange(50, 40);
    expect(clock.time).toMatchObject({ early: ours + offset - 40, late: ours + offset + 50 });
  });

  it('was set forward: what was written by the time of before ends too early', () => {
    expect(exchange(5, 5)).toBe(true);
    offset += 30;
    expect(exchange(5, 5)).toBe(false);
    expect(clock.time).toMatchObject({ early: ours + offset - 5, late: ours + offset + 5 });
    expect(exchange(5, 5)).toBe(true);
  });

  it('was set back: what was written ends later, and the new time counts from then on', () => {
    exchange(5, 5);
    offset -= 30;
    expect(exchange(20, 0)).toBe(true);
    expect(clock.time).toMatchObject({ early: ours + offset, late: ours + offset + 20 });
  });

  it('may drift by a thousandth', () => {
    exchange(0, 0);
    ours += 5_000;
    offset += 5;
    expect(exchange(0, 0)).toBe(true);
  });

  it('gives tokens in microseconds, by the clock of this machine where that of the table is no wall clock', () => {
    exchange(3, 3);
    expect(Math.abs(clock.time.micros - Date.now() * 1000)).toBeLessThan(10_000_000);
    offset = 1.6e12;
    clock.forget();
    exchange(3, 3);
    expect(clock.time.micros).toBe((ours + offset + 3) * 1000);
  });
});
