import { Observations } from '../../../../lib/stores/records/observed/observations.js';

let time: number;
let seen: Observations;

beforeEach(() => {
  time = 5000;
  seen = new Observations();
  jest.spyOn(performance, 'now').mockImplementation(() => time);
});
afterEach(() => jest.restoreAllMocks());

const sightOf = (key: string, stamp: string, revision?: number): number => seen.see(key, [[stamp, revision]]).get(stamp)!.time;

it('a stamp was seen first when it was seen first, as long as it is there', () => {
  expect(sightOf('key', 'a')).toBe(5000);
  time += 100;
  const both = seen.see('key', [
    ['a', undefined],
    ['b', undefined],
  ]);
  expect([...both.values()].map((sight) => sight.time)).toEqual([5000, 5100]);
  time += 100;
  expect(sightOf('key', 'b')).toBe(5100);
  expect(sightOf('key', 'a')).toBe(5200);
  expect(sightOf('other', 'b')).toBe(5200);
});

it('a stamp was seen first by the time of its count at the latest, and the least count is kept', () => {
  seen.hear(10, seen.known);
  time += 100;
  seen.hear(20, seen.known);
  time += 100;
  expect(sightOf('key', 'a', 15)).toBe(5100);
  expect(sightOf('key', 'b', 10)).toBe(5000);
  expect(sightOf('key', 'c', 21)).toBe(5200);
  time += 100;
  expect(sightOf('key', 'c', 30)).toBe(5200);
  expect(seen.revisionOf('key', 'c')).toBe(21);
});

it('the keys that were used last are remembered', () => {
  for (let index = 0; index < 10_000; index++) sightOf(`key ${index}`, 'a');
  time += 100;
  expect(sightOf('key 0', 'a')).toBe(5000);
  sightOf('one more', 'a');
  expect(sightOf('key 2', 'a')).toBe(5000);
  expect(sightOf('key 1', 'a')).toBe(5100);
});

it('many dates become fewer, and none of them too early', () => {
  const MOST = 20_000;
  for (let count = 1; count <= MOST; count++) {
    seen.hear(count, seen.known);
    time += 5;
  }
  const dateOf = (count: number): number => 5000 + 5 * (count - 1);
  let last = 0;
  for (let count = 1; count <= MOST; count += 7) {
    const date = seen.dateOf(count)!;
    const ago = time - dateOf(count);
    expect(date).toBeGreaterThanOrEqual(dateOf(count));
    expect(date).toBeGreaterThanOrEqual(last);
    expect(date - dateOf(count)).toBeLessThanOrEqual(5 + ago / 199);
    expect(seen.countAt(dateOf(count))).toBeLessThanOrEqual(count);
    expect(seen.countAt(date)).toBeGreaterThanOrEqual(count);
    last = date;
  }
  expect((seen as unknown as { counts: number[] }).counts.length).toBeLessThanOrEqual(4096);
  expect(seen.dateOf(MOST + 1)).toBeUndefined();
});

it('counts that come fast are dated five milliseconds apart, by the later one', () => {
  for (let count = 1; count <= 100; count++) {
    seen.hear(count, seen.known);
    time++;
  }
  expect((seen as unknown as { counts: number[] }).counts).toEqual(Array.from({ length: 20 }, (_, index) => 1 + 5 * index));
  expect(seen.dateOf(2)).toBe(5005);
  expect(seen.dateOf(97)).toBeUndefined();
});

it('a count is dated later if there was a date just before, also if it does not grow any more', () => {
  seen.hear(10, seen.known);
  time++;
  seen.hear(12, seen.known);
  expect(seen.dateOf(12)).toBeUndefined();
  time += 1000;
  seen.hear(12, seen.known);
  expect(seen.dateOf(12)).toBe(6001);
});

it('a smaller count than was known when the request was sent says that all may have changed, not than is known now', () => {
  seen.hear(10, seen.known);
  const { known } = seen;
  time += 5;
  seen.hear(20, seen.known);
  expect(seen.hear(15, known)).toBe(0);
  expect(seen.dateOf(20)).toBe(5005);
  expect(seen.hear(19, seen.known)).toBe(1);
  expect(seen.dateOf(20)).toBeUndefined();
  expect(seen.dateOf(19)).toBe(5005);
});

it('a reply to a request of before says nothing then', () => {
  seen.hear(20, seen.known);
  const { known } = seen;
  seen.hear(10, seen.known);
  time += 100;
  expect(seen.hear(30, known)).toBe(0);
  expect(seen.hear(5, known)).toBe(0);
  expect(seen.epoch).toBe(1);
  expect(seen.dateOf(30)).toBeUndefined();
  expect(seen.known).toEqual({ epoch: 1, count: 10 });
});
