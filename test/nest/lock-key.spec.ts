import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { of } from 'rxjs';
import { refusalOf as refusal } from './refusal.js';
import { checkPaths, LOCK_KEY, digestArguments, encodeKeyParts } from '../../lib/nest/key/lock-key.js';

class Dto {
  constructor(
    readonly id: number,
    readonly note?: string,
  ) {}
}
class Secret {
  readonly #code: number;
  constructor(code: number) {
    this.#code = code;
  }
  get code() {
    return this.#code;
  }
}
class Card extends Secret {
  constructor(
    readonly holder: string,
    pin: number,
  ) {
    super(pin);
  }
}
class Money extends Secret {
  toJSON() {
    return { cents: this.code };
  }
}
class Product {
  readonly loadedAt = new Date();
  readonly save = () => undefined;
  constructor(
    readonly sku: unknown,
    readonly stock = 0,
  ) {}
  [LOCK_KEY]() {
    return this.sku;
  }
}
class Basket extends Map<string, number> {
  constructor(
    entries: [string, number][],
    readonly owner: string,
  ) {
    super(entries);
  }
}

const all = (...args: unknown[]) => digestArguments(args, true);
const at = (paths: string[], ...args: unknown[]) => digestArguments(args, paths);
const bytes = (...values: number[]) => new Uint8Array(values);
const named = <T extends object>(value: T) => Object.assign(value, { name: 'named' });
const broken = {
  get id() {
    throw new Error('boom');
  },
};
const nested = (levels: number, value: unknown = 1) => Array.from({ length: levels }).reduce((inner) => [inner], value);
const sparse = (length: number, at: number) => Object.assign(new Array<number>(length), { [at]: 1 });
const shared = { a: 1 };
const circle = {};
const ring = new Map<string, unknown>();
const endless = {
  toJSON(): object {
    return { ...this };
  },
};
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

// The rules of equality are in lock-key.property.spec; here are what it does not draw, and what is refused.
describe('digestArguments', () => {
  it('stays the same from release to release, as processes of two releases may contend', () => {
    expect(all('sku-1', { id: 1, tags: ['a', undefined], at: new Date(0) }, new Map([[{ a: 1n }, new Set([null])]]))).toBe(
      '4d149eef01a4d45c3c654ab8d12c8079',
    );
    expect(all({ text: 'x'.repeat(200), bytes: bytes(1, 2), wide: new Float64Array([-0]), re: /a/i })).toBe(
      '6a1a92bbb96156d3ba035b92876e085e',
    );
  });

  it.each<[string, unknown[], unknown[]]>([
    ['-0 and 0', [-0, [-0], new Float32Array([-0])], [0, [0], new Float32Array([0])]],
    ['a shared reference and its copies', [[shared, shared]], [[{ a: 1 }, { a: 1 }]]],
    ['a regular expression before and after its use', [/a/g], [Object.assign(/a/g, { lastIndex: 3 })]],
    ['a view and a copy of the same bytes', [bytes(0, 1, 2).subarray(1)], [bytes(1, 2)]],
    ['an instance and a record of the same fields', [new Dto(1)], [{ id: 1 }]],
    ['a record without prototype and one with', [Object.assign(Object.create(null), { a: 1 })], [{ a: 1 }]],
    [
      'values of another realm and of this one',
      [runInNewContext('[new Date(1), new Map([[1, 2]]), /a/]')],
      [[new Date(1), new Map([[1, 2]]), /a/]],
    ],
    ['instances that differ in a private field only', [new Card('me', 1)], [new Card('me', 2)]],
    ['instances with equal toJSON() results', [new Money(5)], [new Money(5)]],
    ['instances with the same LOCK_KEY, whatever their other fields', [new Product('a', 1)], [new Product('a', 2)]],
    ['instances with equal lists as LOCK_KEY', [new Product(['a', { n: 1n }])], [new Product(['a', { n: 1n }])]],
    ['a record with a hook of util.inspect and one without', [{ a: 1, [Symbol.for('nodejs.util.inspect.custom')]: () => '' }], [{ a: 1 }]],
  ])('is the same for %s', (_, left, right) => {
    expect(all(...left)).toBe(all(...right));
  });

  it.each<[string, unknown[], unknown[]]>([
    ['an array with and without a named field', [named([1])], [[1]]],
    ['composed and decomposed letters', ['é'], ['e\u0301']],
    ['two URLs', [new URL('https://a.example')], [new URL('https://b.example')]],
    ['maps with other fields of their own', [new Basket([['a', 1]], 'me')], [new Basket([['a', 1]], 'you')]],
    ['a Uint8Array and a Uint8ClampedArray', [bytes(1, 2)], [new Uint8ClampedArray([1, 2])]],
    ['a Buffer and its JSON', [Buffer.from([1])], [Buffer.from([1]).toJSON()]],
    ['a boxed number and a number', [Object(1)], [1]],
    ['boxed primitives of other types', [Object(1), Object(1n)], [Object('1'), Object(true)]],
    ["a boxed 'a' and { 0: 'a' }", [Object('a')], [{ 0: 'a' }]],
    ['instances with other toJSON() results', [new Money(5)], [new Money(6)]],
    ['an instance and its LOCK_KEY', [new Product('a')], ['a']],
    ['long texts with one letter changed', [`${'x'.repeat(5000)}a`], [`${'x'.repeat(5000)}b`]],
    ['records with a long text each, changed deep inside', [{ a: { b: ['x'.repeat(200), 1] } }], [{ a: { b: ['x'.repeat(200), 2] } }]],
  ])('differs for %s', (_, left, right) => {
    expect(all(...left)).not.toBe(all(...right));
  });

  it.each<[string, () => unknown, RegExp]>([
    ['a function', () => () => 1, /^argument 1 is a function, which has no stable form; lock by a part of it/],
    ['a function under an odd name', () => ({ 'on done': all }), /^argument 1 at \["on done"] is a function/],
    ['a function in a map', () => new Map([['a', all]]), /^argument 1 at \.0\.1 is a function/],
    ['a symbol', () => Symbol('a'), /^argument 1 is a symbol/],
    ['a boxed symbol', () => Object(Symbol('a')), /^argument 1 at \.valueOf\(\) is a symbol/],
    ['a record with data under a symbol', () => ({ [Symbol('or')]: 1 }), /^argument 1 has a field named by a symbol/],
    ['a promise', () => Promise.resolve(1), /^argument 1 is a promise/],
    ['a thenable', () => ({ then: () => undefined }), /^argument 1 is a promise/],
    ['a Node stream', () => Readable.from(['a']), /^argument 1 is a stream or a request/],
    ['an Observable', () => of(1), /^argument 1 is a stream or a request/],
    ['a wrapped request', () => ({ id: 1, raw: new IncomingMessage(new Socket()) }), /^argument 1 at \.raw is a stream or a request/],
    ['a request of fetch', () => new Request('http://localhost'), /^argument 1 is of class Request and without fields/],
    ['a WeakMap, also with a field of its own', () => named(new WeakMap()), /^argument 1 is of type WeakMap/],
    ['a generator', () => named((function* () {})()), /^argument 1 is of type Generator/],
    ['an error, as its message is no field', () => Object.assign(new TypeError('a'), { code: 1 }), /^argument 1 is an error/],
    ['an invalid date', () => new Date(NaN), /^argument 1 is an invalid Date/],
    ['an instance whose state cannot be seen', () => new Secret(1), /^argument 1 is of class Secret and without fields of its own/],
    ['an instance whose LOCK_KEY is undefined', () => new Product(undefined), /^argument 1 has a LOCK_KEY\(\) that returned nothing/],
    ['an instance whose LOCK_KEY is a promise', () => new Product(Promise.resolve(1)), /^argument 1 at \.LOCK_KEY\(\) is a promise/],
    ['a LOCK_KEY that is no method', () => ({ [LOCK_KEY]: 5 }), /^argument 1 at \.LOCK_KEY\(\) cannot be read/],
    ['a toJSON() that returns nothing', () => ({ toJSON: () => undefined }), /^argument 1 has a toJSON\(\) that returned nothing/],
    ['a toJSON() without an end', () => endless, /^argument 1 at \.toJSON\(\)\.toJSON\(\).*… is nested more than 1000 levels/],
    ['a getter that throws', () => ({ user: broken }), /^argument 1 at \.user\.id cannot be read \(boom\)/],
    ['a revoked proxy', revoked, /^argument 1 cannot be read/],
    ['a cycle', () => Object.assign(circle, { b: { c: circle } }), /^argument 1 at \.b\.c is a cycle/],
    ['a cycle through a map', () => ring.set('me', ring), /^argument 1 at \.0\.1 is a cycle/],
    ['more than 1,000 levels', () => nested(1_001), /^argument 1 at [.0]+… is nested more than 1000 levels deep/],
    ['100,000 levels, without a stack overflow', () => nested(100_000), /^argument 1 at [.0]+… is nested more than 1000/],
  ])('refuses %s', (_, make, message) => {
    const value = make();
    expect(refusal(() => all('a', value))).toMatch(message);
  });

  const TOO_LARGE =
    /^argument 1 is too large: the key would be made of more than 100000 fields or 2000000 characters, which blocks the process; lock by a part of it/;
  it.each<[string, unknown]>([
    ['a record', { in: Object.fromEntries(Array.from({ length: 100_001 }, (_, id) => [`field ${id}`, id])) }],
    ['small records', Array.from({ length: 50_001 }, (_, id) => ({ id }))],
    ['a Set', new Set(Array.from({ length: 100_001 }, (_, id) => id))],
    ['numbers in a typed array', new Float64Array(100_001)],
  ])('refuses more than 100,000 fields of %s', (_, value) => {
    expect(refusal(() => all('a', value))).toMatch(TOO_LARGE);
    expect(refusal(() => at(['1'], 'a', value))).toMatch(TOO_LARGE);
  });

  it('refuses more than 100,000 fields in all arguments together', () => {
    const half = () => new Float64Array(60_000);
    expect(all(half())).not.toBe(all(half().fill(1)));
    expect(refusal(() => all(half(), half()))).toMatch(TOO_LARGE);
  });

  const LONG = 'x'.repeat(1_200_000);
  it.each<[string, unknown[]]>([
    ['a text', [LONG + LONG]],
    ['texts in all arguments together', [{ a: LONG }, [LONG]]],
    ['names of fields', [{ [`${LONG}1`]: 1, [`${LONG}2`]: 2 }]],
    ['what names itself', [{ [LOCK_KEY]: () => LONG + LONG }]],
  ])('refuses more than two million characters of %s', (_, args) => {
    expect(refusal(() => all('a', ...args))).toMatch(/^argument [12] is too large: .* 2000000 characters/);
  });

  it('takes two million characters', () => {
    expect(all(LONG, LONG.slice(400_000))).not.toBe(all(LONG, `${LONG.slice(400_001)}y`));
  });

  it('takes 1,000 levels', () => {
    expect(all(nested(1_000))).not.toBe(all(nested(1_000, 2)));
  });

  it('lets even an error, a function or a stream pass that names itself by LOCK_KEY', () => {
    const self = { [LOCK_KEY]: () => 'me' };
    expect(all(Object.assign(new Error('a'), self))).toBe(all(Object.assign(() => 1, self)));
    expect(all(Object.assign(Readable.from([]), self))).toBe(all(self));
  });

  it('keeps the error of a getter as the cause', () => {
    expect(() => all(broken)).toThrow(expect.objectContaining({ cause: expect.objectContaining({ message: 'boom' }) }));
  });

  it('does not change because BigInt, Map or Buffer were taught to be JSON', () => {
    const value = () => [1n, new Map([['a', 1]]), Buffer.from([1])];
    const before = all(value());
    const prototypes = [BigInt.prototype, Map.prototype] as object[];
    for (const prototype of prototypes) Object.defineProperty(prototype, 'toJSON', { value: () => 'json', configurable: true });
    try {
      expect(all(value())).toBe(before);
    } finally {
      for (const prototype of prototypes) Reflect.deleteProperty(prototype, 'toJSON');
    }
  });

  // What grew by the square of its fields, took as long as its length says, or doubled with each level, would not end within the test's time.
  it.each<[string, () => unknown]>([
    ['a sparse array of four billion', () => sparse(4e9, 4e9 - 2)],
    ['a buffer of 1 MB', () => Buffer.alloc(1_000_000)],
    ['20,000 records', () => Array.from({ length: 20_000 }, (_, id) => ({ id, tags: ['a', 'b'] }))],
    ['a record of 100,000 fields', () => Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`field ${i}`, i]))],
    ['an object referred to twice on each of 500 levels', () => Array.from({ length: 500 }).reduce((inner) => [inner, inner], ['leaf'])],
  ])('comes to an end with %s', (_, make) => {
    expect(all(make())).toEqual(expect.any(String));
  });

  describe('by paths', () => {
    it('takes only the values at the paths', () => {
      expect(at(['0.id', '1'], { id: 1, at: new Date(1) }, 'a', 1)).toBe(at(['0.id', '1'], { id: 1, at: new Date(2) }, 'a', 2));
      expect(at(['0.id', '1'], { id: 1 }, 'a')).not.toBe(at(['0.id', '1'], { id: 1 }, 'b'));
      expect(at(['0.parent'], { parent: null })).not.toBe(at(['0.parent'], { parent: 0 }));
    });

    it('reaches into lists, instances, getters and texts', () => {
      expect(at(['0.1.id'], [0, new Dto(7)])).toBe(at(['0'], 7));
      expect(at(['0.code'], new Secret(7))).toBe(at(['0'], 7));
      expect(at(['0.length'], 'seven!!')).toBe(at(['0'], 7));
    });

    it.each<[string, string, unknown[], RegExp]>([
      ['an argument that was not given', '1', ['a'], /^argument 1 leads nowhere/],
      ['an undefined argument', '0', [undefined], /^argument 0 leads nowhere/],
      ['a property of a missing one', '0.user.id', [{}], /^argument 0 at \.user leads nowhere/],
      ['a property of null', '0.user.id', [{ user: null }], /^argument 0 at \.user\.id leads nowhere/],
      ['what every object inherits', '0.__proto__', [{}], /^argument 0 at \.__proto__ leads nowhere/],
      ['a method', '0.toJSON', [new Money(1)], /^argument 0 at \.toJSON is a function/],
      ['a getter that throws', '0.id', [broken], /^argument 0 at \.id cannot be read \(boom\)/],
      ['something without a stable form further in', '0.user', [{ user: { f: all } }], /^argument 0 at \.user\.f is a function/],
    ])('refuses %s', (_, path, args, message) => {
      expect(refusal(() => at([path], ...args))).toMatch(message);
    });
  });
});

it('checkPaths takes paths that begin with the index of an argument, and refuses all else', () => {
  for (const paths of [['0'], ['0.id', '1'], ['12.user.address.zip', '0.$id', '0.größe', '0.0']]) expect(checkPaths(paths)).toBeUndefined();
  const wrong = ['', 'id', 'user.id', '-1', '1.5.', '00', '0.', '.0', '0..id', '0 .id', '0[1]'].map((path) => [path]);
  for (const paths of [undefined, null, '0', { 0: '0' }, [], [0], ['0', undefined], new Array(1), ['0.id', 'x'], ...wrong]) {
    expect(checkPaths(paths)).toMatch(/a list of paths/);
  }
});

describe('encodeKeyParts', () => {
  it.each<[string, unknown, RegExp]>([
    ['a promise', Promise.resolve('a'), /^key returned a promise; it must return a string/],
    ['undefined', undefined, /^key returned undefined;/],
    ['NaN', NaN, /^key returned NaN;/],
    ['Infinity', [1, -Infinity], /^key returned -Infinity at 1;/],
    ['a function', () => 'a', /^key returned a function;/],
    ['a boxed string', Object('a'), /^key returned an object;/],
    ['a list in a list', ['a', ['b']], /^key returned a list at 1;/],
    ['an empty list', [], /^key returned nothing to lock by/],
    ['a list of empty texts', ['', ''], /^key returned nothing to lock by/],
    ['half a surrogate pair', ['a', '\ud83d'], /^key returned half a surrogate pair at 1/],
  ])('refuses %s', (_, parts, message) => {
    expect(refusal(() => encodeKeyParts(parts))).toMatch(message);
  });

  it('refuses a promise that rejects, whose error would end the process', async () => {
    const parts = Promise.reject(new Error('no key'));
    expect(refusal(() => encodeKeyParts(parts))).toMatch(/^key returned a promise;/);
    await new Promise((resolve) => setImmediate(resolve));
  });
});
