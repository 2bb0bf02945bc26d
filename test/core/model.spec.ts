import { hostname } from 'node:os';
import {
  LockAbortedError,
  LockConfigError,
  LockError,
  LockLostError,
  Locks,
  LockTimeoutError,
  QuorumError,
  StoreError,
  UnsupportedPrimitiveError,
} from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { asStoreError } from '../../lib/core/model/errors.js';
import { checkKey } from '../../lib/core/model/key.js';
import { ownerIds } from '../../lib/core/model/owner.js';

const key = 'order:42';
const cause = new Error('ECONNREFUSED');
const all: [string, string, LockError][] = [
  ['LockTimeoutError', 'LOCK_TIMEOUT', new LockTimeoutError('m', { key, cause })],
  ['LockAbortedError', 'LOCK_ABORTED', new LockAbortedError('m', { key, cause, reason: 'shutdown' })],
  ['LockLostError', 'LOCK_LOST', new LockLostError('m', { key, cause, result: 1 })],
  ['StoreError', 'LOCK_STORE', new StoreError('m', { key, cause, transient: true })],
  ['QuorumError', 'LOCK_QUORUM', new QuorumError('m', { key, cause, votes: [1, 2] })],
  ['UnsupportedPrimitiveError', 'LOCK_UNSUPPORTED', new UnsupportedPrimitiveError('m', { key, cause })],
  ['LockConfigError', 'LOCK_CONFIG', new LockConfigError('m', { key, cause })],
];

/** The package a second time, as when an ESM app and a CommonJS library both bring it. */
type Copy = Record<string, new () => LockError>;
let copy!: Copy;
jest.isolateModules(() => (copy = jest.requireActual<Copy>('../../lib/core.js')));

describe.each(all)('a %s', (name, code, error) => {
  it('says its name, code, key, cause and message', () => {
    expect(error).toMatchObject({ name, code, key, cause, message: `m [${code}]` });
    expect(String(error)).toBe(`${name}: m [${code}]`);
    expect(error.stack).toContain('model.spec');
  });

  it('is an Error, a LockError and none of the others, also to a second copy of the package', () => {
    expect(copy['LockError']).not.toBe(LockError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(LockError);
    expect(error).toBeInstanceOf(copy['LockError']);
    expect(all.filter((other) => error instanceof other[2].constructor)).toHaveLength(1);
    expect(all.map(([other]) => other).filter((other) => error instanceof copy[other]!)).toEqual([name]);
  });
});

describe('a LockError', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'LOCK_TIMEOUT'],
    ['another error', new Error('m')],
    ['an object with the same code', { name: 'LockTimeoutError', code: 'LOCK_TIMEOUT' }],
    ['an object without prototype', Object.create(null)],
  ])('is not %s', (_what, value) => {
    expect([value instanceof LockError, value instanceof LockTimeoutError]).toEqual([false, false]);
  });

  it('can be extended: the child is an instance of its parents, and no other error is one of the child', () => {
    class OutOfStock extends LockTimeoutError {}
    const error = new OutOfStock('m');
    const kinds = [OutOfStock, LockTimeoutError, StoreError].map((type) => error instanceof type);
    expect([...kinds, new LockTimeoutError('m') instanceof OutOfStock]).toEqual([true, true, false, false]);
  });

  it('has its own fields, and shows no others in a log', () => {
    expect(new LockLostError('m', { result: { id: 1 } }).result).toEqual({ id: 1 });
    expect(new LockAbortedError('m', { reason: 'signal' }).reason).toBe('signal');
    expect(new QuorumError('m', { votes: ['granted', cause] }).votes).toEqual(['granted', cause]);
    expect(Object.keys(new LockTimeoutError('m', { key })).sort()).toEqual(['code', 'holder', 'holderLabel', 'key', 'name']);
  });

  it('is transient only if it says so, or if it is of a quorum', () => {
    const errors = [true, false].map((transient) => new StoreError('m', { transient }));
    const others = [new QuorumError('m', { votes: [] }), new LockTimeoutError('m'), new LockConfigError('m')];
    expect([...errors, ...others].map(({ transient }) => transient)).toEqual([true, false, true, false, false]);
  });
});

describe('what a driver rejects with', () => {
  it('stays what it is, and gets the key that it was about', () => {
    const error = asStoreError(new StoreError('m', { transient: true, cause }), key);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: 'm [LOCK_STORE]', key, transient: true, cause });
    const votes = new QuorumError('m', { votes: [] });
    expect(asStoreError(votes, key)).toBe(votes);
    expect(asStoreError(new StoreError('m', { transient: true, key: 'other' }), key).key).toBe('other');
  });

  it.each([new TypeError('x is undefined'), 'a text', undefined])('is a permanent StoreError if it is none of ours: %p', (fault) => {
    const error = asStoreError(fault, key);
    expect(error).toBeInstanceOf(StoreError);
    expect([error.cause, error.transient]).toEqual([fault, false]);
    expect(error.message).toContain(key);
  });
});

describe('a key', () => {
  const good = ['a', ' ', 'Größe / 大小 / 🔒', 'a'.repeat(512), '{42}', 'order:{42}', '{42}:order', 'order:{4 2}:lock', '__proto__', '%7B', '*?[a-z]', '"\'\\']; // prettier-ignore
  it.each(good)('may be %j', (text) => expect(checkKey(text)).toBe(text));

  const locks = new Locks(memoryStore());
  it.each<[string, unknown, RegExp]>([
    ['undefined', undefined, /must be a string, not undefined/],
    ['null', null, /must be a string, not null/],
    ['a number', 42, /must be a string, not number/],
    ['an array', ['a'], /must be a string: several keys are taken by multiLock/],
    ['a symbol', Symbol('a'), /must be a string, not symbol/],
    ['nothing', '', /must not be empty/],
    ['513 characters', 'a'.repeat(513), /at most 512 characters, this one has 513/],
    ['a line break', 'a\nb', /control characters: "a\\nb"/],
    ['a zero byte', 'a\0', /control characters/],
    ['a delete character', 'a\x7f', /control characters/],
    ['a C1 control character', 'a\x85', /control characters/],
    ['half a surrogate pair', 'a\ud800', /well-formed Unicode/],
    ['an opening brace', 'a{b', /hash tag/],
    ['a closing brace', 'a}b', /hash tag/],
    ['an empty hash tag', 'a{}', /hash tag/],
    ['braces the wrong way round', '}a{', /hash tag/],
    ['two hash tags', '{a}{b}', /hash tag/],
    ['a hash tag in a hash tag', '{{a}}', /hash tag/],
    ['an unclosed hash tag after a closed one', '{a}{', /hash tag/],
  ])('must not be or hold %s', async (_what, wrong, message) => {
    const body = jest.fn();
    const given = wrong as string;
    expect(() => checkKey(wrong)).toThrow(message);
    expect(() => locks.mutex(given)).toThrow(LockConfigError);
    const calls = [locks.acquire(given), locks.tryAcquire(given), locks.using(given, body)];
    await Promise.all(calls.map((call) => expect(call).rejects.toThrow(LockConfigError)));
    expect(body).not.toHaveBeenCalled();
  });

  it.each([
    ['too long together', 'a'.repeat(500), 'b'.repeat(20)],
    ['two hash tags together', '{a}', '{b}'],
    ['a control character in the namespace', 'a\n', 'b'],
  ])('and its namespace must not be %s', (_what, namespace, name) => {
    expect(() => new Locks(memoryStore(), { namespace }).mutex(name)).toThrow(LockConfigError);
  });
});

it('an owner id says which app, host and process holds the key, and is never the same twice', () => {
  const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
  const { groups } = new RegExp(`^(?<app>.+)@(?<host>.+):(?<pid>\\d+):${uuid}$`).exec(ownerIds('@acme/shop')()) ?? {};
  expect(groups).toMatchObject({ app: '@acme/shop', host: hostname(), pid: String(process.pid) });
  expect(new Set(Array.from({ length: 1_000 }, ownerIds())).size).toBe(1_000);
});

it('a program whose package has a name that no owner id can have is named by the nearest package, or node', async () => {
  const { npm_package_name: before } = process.env;
  process.env.npm_package_name = 'Our Shop';
  await jest.isolateModulesAsync(async () => {
    const { ownerIds, partsOf } = await import('../../lib/core/model/owner.js');
    expect(partsOf(ownerIds()())).toMatchObject({ app: expect.not.stringContaining(' ') });
  });
  if (before === undefined) delete process.env.npm_package_name;
  else process.env.npm_package_name = before;
});
