/** The assertions of Jest that the contracts use: `expect` of Jest, of Vitest and of the package `expect` has them. */
export interface Matchers {
  toBe(expected: unknown): void;
  toBeGreaterThan(expected: number): void;
  toBeGreaterThanOrEqual(expected: number): void;
  toBeLessThanOrEqual(expected: number): void;
  toBeUndefined(): void;
  toContain(expected: unknown): void;
  toEqual(expected: unknown): void;
  toHaveLength(expected: number): void;
  toMatchObject(expected: object): void;
}

/** Makes {@link Matchers} of a value. */
export interface Expect {
  (actual: unknown): Matchers & { readonly not: Matchers };
  any(type: unknown): unknown;
}

/** The functions of a test runner that the contracts call. `node:test` has all but `expect`: give it that of the package `expect`, which is Jest's. */
export interface TestRunner {
  describe(title: string, body: () => void): unknown;
  it(title: string, test: () => Promise<void> | void, timeout: number): unknown;
  beforeEach(work: () => unknown): unknown;
  afterEach(work: () => unknown): unknown;
  readonly expect: Expect;
}

/** Milliseconds that a test may take: it is there for what hangs. */
const TIME_LIMIT = 120_000;
const NEEDED = ['describe', 'it', 'beforeEach', 'afterEach', 'expect'] as const;

/** A test file has one runner. */
let current: TestRunner = globalThis as typeof globalThis & TestRunner;

/**
 * Each contract begins with it.
 *
 * @param runner default: the globals of Jest, and of Vitest with `globals: true`.
 */
export function runBy(runner = current): void {
  const missing = NEEDED.find((name) => typeof runner[name] !== 'function');
  if (missing) throw new TypeError(`There is no global "${missing}": give the contract a "runner", { ${NEEDED.join(', ')} }.`);
  current = runner;
}

export function describe(title: string, body: () => void): void {
  // node:test returns a promise, and collects what fails by itself.
  void current.describe(title, body);
}

export function it(title: string, test: () => Promise<void> | void): void {
  void current.it(title, test, TIME_LIMIT);
}

export function beforeEach(work: () => unknown): void {
  // Jest takes no value from a hook that is no promise.
  current.beforeEach(async () => void (await work()));
}

export function afterEach(work: () => unknown): void {
  current.afterEach(async () => void (await work()));
}

export const expect: Expect = Object.assign((actual: unknown) => current.expect(actual), {
  any: (type: unknown) => current.expect.any(type),
});
