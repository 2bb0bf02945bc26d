// The lint rules of scripts/lint/sure-tests.mjs, which find what in a test depends on the speed of the machine.
import { Linter } from 'eslint';
import { resolve } from 'node:path';

const VIRTUAL = `import '../support/virtual-time.js';\n`;
const linter = new Linter();
let config: Linter.Config;

beforeAll(async () => {
  const { default: plugin } = (await import(resolve('scripts/lint/sure-tests.mjs'))) as { default: { rules: object } };
  const rules = Object.fromEntries(Object.keys(plugin.rules).map((name) => [`tests/${name}`, 'error' as const]));
  config = { plugins: { tests: plugin as never }, rules };
});

/** The rules that find something in a source, once for each finding. */
const found = (source: string): (string | null)[] => linter.verify(source, [config]).map(({ ruleId, message }) => ruleId ?? message);

describe('a test on real time', () => {
  it.each([
    ['expect(performance.now() - start).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['expect(Date.now()).not.toBeLessThanOrEqual(500);', 'tests/no-upper-bound-on-time'],
    ['const took = performance.now() - start; expect(took).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['const a = performance.now(); const b = a - 1; expect([b]).toBeLessThan(5);', 'tests/no-upper-bound-on-time'],
    ['let now; now = performance.now(); expect(now).toBeLessThan(5);', 'tests/no-upper-bound-on-time'],
    ['function spent() { return performance.now() - start; } expect(spent()).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['const spent = () => performance.now() - start; expect(spent()).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['expect(call.took).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['expect(await timeOf(call)).toBeLessThan(500);', 'tests/no-upper-bound-on-time'],
    ['expect(500).toBeGreaterThan(performance.now() - start);', 'tests/no-upper-bound-on-time'],
    ['await eventually(isSo, { within: 500 });', 'tests/no-upper-bound-on-time'],
    [`it('works', async () => undefined, 5_000);`, 'tests/no-upper-bound-on-time'],
    ['jest.setTimeout(5_000);', 'tests/no-upper-bound-on-time'],
    [`const LIMIT = 60 * 1_000; beforeAll(start, LIMIT);`, 'tests/no-upper-bound-on-time'],
    [`it.each([1])('works', async () => undefined, 5_000);`, 'tests/no-upper-bound-on-time'],
    ['await pause(10);', 'tests/no-sleep'],
    ['await new Promise((resolve) => setTimeout(resolve, 10));', 'tests/no-sleep'],
    ['locks.acquire(key, { signal: AbortSignal.timeout(10) });', 'tests/no-sleep'],
    [`import { setTimeout as wait } from 'node:timers/promises';`, 'tests/no-sleep'],
    ['locks.acquire(key, { keyTimeout: 300 });', 'tests/no-short-lease'],
    ['const SHORT = 2 * 1_000; locks.acquire(key, { ttl: SHORT });', 'tests/no-short-lease'],
    ['redisStore({ requestTimeout: 500 });', 'tests/no-short-lease'],
  ])('may not: %s', (source, rule) => {
    expect(found(source)).toEqual([rule]);
    expect(found(VIRTUAL + source)).toEqual([]);
  });

  it.each([
    'expect(requests).toBeLessThanOrEqual(3);',
    'expect(performance.now() - start).toBeGreaterThanOrEqual(500);',
    'const count = calls.length; expect(count).toBeLessThan(5);',
    'const { count } = { count: 1, end: performance.now() }; expect(count).toBeLessThan(5);',
    'expect(performance.now()).toBeGreaterThanOrEqual(start + 500);',
    'const start = performance.now(); expect(Date.now()).toBeGreaterThanOrEqual(start + 500);',
    'locks.acquire(key, { keyTimeout: 5_000 });',
    'locks.acquire(key, { keyTimeout: SHORT_LEASE });',
    `it('works', async () => undefined, 300_000);`,
    'jest.setTimeout(300_000);',
    'await eventually(isSo); await staysTrue(isSo, 100);',
  ])('may: %s', (source) => {
    expect(found(source)).toEqual([]);
  });
});
