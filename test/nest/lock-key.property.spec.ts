import fc from 'fast-check';
import { digestArguments, encodeKeyParts } from '../../lib/nest/key/lock-key.js';

const all = (args: unknown[]) => digestArguments(args, true);

// Few and similar leaves and names, so that two values drawn apart are often equal and more often nearly so.
const codeUnits = fc.array(fc.constantFrom(0x22, 0x2c, 0x30, 0x5c, 0x61, 0xd800, 0xdc00, 0xfffd), { maxLength: 3 });
const text = fc.oneof(fc.constantFrom('', '0', '1', '1n', 'null', 'a'), codeUnits.map((units) => String.fromCharCode(...units))); // prettier-ignore
const leaf = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, true, false, 0, -0, 1, 1.5, -1, NaN, Infinity, 0n, 1n, -1n),
  text,
  fc.constantFrom(0, 1).map((ms) => new Date(ms)),
  fc.constantFrom('a', '0').chain((source) => fc.constantFrom('', 'g').map((flags) => new RegExp(source, flags))),
  fc.array(fc.constantFrom(0, 1), { maxLength: 2 }).chain((values) =>
    fc.constantFrom<() => unknown>(
      () => Buffer.from(values),
      () => new Uint8Array(values),
      () => new Uint16Array(values),
      () => new Float64Array(values),
      () => new Uint8Array(values).buffer,
      () => new DataView(new Uint8Array(values).buffer),
    ),
  ).map((make) => make()), // prettier-ignore
);
const name = fc.constantFrom('a', 'b', '0', '1', 'a"b', '__proto__', 'length');
const { value } = fc.letrec((tie) => {
  const item = tie('value');
  return {
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { weight: 3, arbitrary: leaf },
      fc.array(item, { maxLength: 3 }),
      fc.sparseArray(item, { maxLength: 4, maxNumElements: 2 }),
      fc.uniqueArray(fc.tuple(name, item), { maxLength: 3, selector: ([key]) => key }).map(record),
      fc.array(fc.tuple(item, item), { maxLength: 3 }).map((entries) => new Map(entries)),
      fc.array(item, { maxLength: 3 }).map((entries) => new Set(entries)),
    ),
  };
});

/** Defines and does not assign: `__proto__` is a name like any other. */
function record(fields: Iterable<readonly [string, unknown]>): object {
  const built = {};
  for (const [key, field] of fields)
    Object.defineProperty(built, key, { value: field, enumerable: true, writable: true, configurable: true });
  return built;
}

interface Changes {
  /** In which order fields and entries go that have none. */
  order?: <T>(entries: T[]) => T[];
  keep?: (field: unknown) => boolean;
  leaf?: (leaf: unknown) => unknown;
}

/** A copy that shares nothing with the original but leaves. */
function rebuild(original: unknown, changes: Changes): unknown {
  const { order = (entries) => entries, keep = () => true, leaf = (same) => same } = changes;
  const again = (inner: unknown) => rebuild(inner, changes);
  if (Array.isArray(original)) return Array.from(original, again);
  if (original instanceof Map) return new Map(order([...original]).map(([key, entry]) => [again(key), again(entry)]));
  if (original instanceof Set) return new Set(order([...original]).map(again));
  if (original === null || typeof original !== 'object' || Object.getPrototypeOf(original) !== Object.prototype) return leaf(original);
  const fields = Object.entries(original).filter(([, field]) => keep(field));
  return record(order(fields).map(([key, field]) => [key, again(field)] as const));
}

/** What the rules add to deep equality: undefined fields and trailing arguments are missing, holes undefined, -0 is 0, a Buffer is its bytes. */
function normal(args: unknown[]): unknown {
  return rebuild(args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1), {
    keep: (field) => field !== undefined,
    leaf: (leaf) => (leaf === 0 ? 0 : Buffer.isBuffer(leaf) ? new Uint8Array(leaf) : leaf),
  });
}

/** Deep equality. Not Node's `isDeepStrictEqual`, which up to Node 22 throws for a set that has `undefined` and objects. */
function isEqual(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (!isObject(left) || !isObject(right) || kindOf(left) !== kindOf(right)) return false;
  const [ours, theirs] = [partsOf(left), partsOf(right)];
  if (ours.length !== theirs.length) return false;
  if (Array.isArray(left)) return ours.every((part, index) => isEqual(part, theirs[index]));
  // Without an order: each part takes an equal one away.
  return ours.every((part) => {
    const found = theirs.findIndex((other) => isEqual(part, other));
    return found >= 0 && theirs.splice(found, 1).length === 1;
  });
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const kindOf = (value: object): string => Object.prototype.toString.call(value);

function partsOf(value: object): unknown[] {
  if (Array.isArray(value) || value instanceof Set || value instanceof Map) return [...(value as Iterable<unknown>)];
  if (value instanceof Date) return [value.getTime()];
  if (value instanceof RegExp) return [String(value)];
  if (ArrayBuffer.isView(value)) return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')];
  return kindOf(value) === '[object ArrayBuffer]' ? [Buffer.from(value as ArrayBuffer).toString('hex')] : Object.entries(value);
}

const args = fc.array(value, { maxLength: 3 });

describe('digestArguments', () => {
  it('does not depend on the order of properties, map entries and set entries', () => {
    fc.assert(
      fc.property(args, (original) => {
        expect(all(rebuild(original, { order: (entries) => entries.toReversed() }) as unknown[])).toBe(all(original));
      }),
      { numRuns: 300 },
    );
  });

  it('is equal if and only if the arguments are', () => {
    const seen = { equal: 0, different: 0 };
    const compare = (left: unknown[], right: unknown[]) => {
      const equal = isEqual(normal(left), normal(right));
      seen[equal ? 'equal' : 'different'] += 1;
      expect(all(left) === all(right)).toBe(equal);
    };
    const examples = { numRuns: 1_000 };
    fc.assert(fc.property(args, args, compare), examples);
    fc.assert(
      fc.property(args, fc.nat({ max: 6 }), leaf, (left, which, other) => {
        let count = 0;
        compare(left, rebuild(left, { leaf: (same) => (count++ === which ? other : same) }) as unknown[]);
      }),
      examples,
    );
    expect(seen.equal).toBeGreaterThan(50);
    expect(seen.different).toBeGreaterThan(50);
  });

  it('of all arguments by path is equal if and only if they are', () => {
    const given = fc.tuple(value, value).filter((pair) => !pair.includes(undefined));
    const byPath = (pair: unknown[]) => digestArguments(pair, ['0', '1']);
    fc.assert(
      fc.property(given, given, (left, right) => {
        expect(byPath(left) === byPath(right)).toBe(isEqual(normal(left), normal(right)));
      }),
      { numRuns: 300 },
    );
  });
});

const part = fc.oneof(
  fc.string({ unit: fc.constantFrom('-', '%', '2', 'D', '{', '}', 'a', ' ', 'ö', '\u{1f512}'), maxLength: 3 }),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.constantFrom(-2, -1, -0, 0, 1, 2),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt(),
);
const parts = fc.array(part, { minLength: 1, maxLength: 4 }).filter((list) => list.some((item) => item !== ''));

it('what encodeKeyParts makes can be read back, so no two lists share a text, and leaves nothing that a key may not hold: no brace, control character or blank', () => {
  fc.assert(
    fc.property(parts, (list) => {
      const text = encodeKeyParts(list);
      expect(text).toMatch(/^[\w.!~*'()%-]+$/);
      expect(text.split('-').map(decodeURIComponent)).toEqual(list.map(String));
    }),
    { numRuns: 500 },
  );
});
