import {
  LockAbortedError,
  LockConfigError,
  LockError,
  LockLostError,
  LockTimeoutError,
  QuorumError,
  StoreError,
  UnsupportedPrimitiveError,
} from 'nestjs-distributed-lock/core';
import { asStoreError } from '../../lib/core/model/errors.js';

const key = 'order:42';
const cause = new Error('ECONNREFUSED');
const all: [string, string, LockError, abstract new (...args: never[]) => LockError][] = [
  ['LockTimeoutError', 'LOCK_TIMEOUT', new LockTimeoutError('m', { key, cause }), LockTimeoutError],
  ['LockAbortedError', 'LOCK_ABORTED', new LockAbortedError('m', { key, cause, reason: 'shutdown' }), LockAbortedError],
  ['LockLostError', 'LOCK_LOST', new LockLostError('m', { key, cause, result: 1 }), LockLostError],
  ['StoreError', 'LOCK_STORE', new StoreError('m', { key, cause, transient: true }), StoreError],
  ['QuorumError', 'LOCK_QUORUM', new QuorumError('m', { key, cause, votes: [1, 2] }), QuorumError],
  ['UnsupportedPrimitiveError', 'LOCK_UNSUPPORTED', new UnsupportedPrimitiveError('m', { key, cause }), UnsupportedPrimitiveError],
  ['LockConfigError', 'LOCK_CONFIG', new LockConfigError('m', { key, cause }), LockConfigError],
];

/** The package a second time, as when an ESM app and a CommonJS library both bring it. */
function secondCopy(): Record<string, new () => LockError> {
  let copy!: Record<string, new () => LockError>;
  jest.isolateModules(() => (copy = jest.requireActual('../../lib/core.js')));
  return copy;
}

describe.each(all)('a %s', (name, code, error, type) => {
  it('says its name, code, key, cause and message', () => {
    expect(error).toMatchObject({ name, code, key, message: 'm' });
    expect(error.cause).toBe(cause);
    expect(String(error)).toBe(`${name}: m`);
    expect(error.stack).toContain('errors.spec');
  });

  it('is an Error, a LockError, and none of the others', () => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(LockError);
    expect(all.filter(([, , , other]) => error instanceof other).map(([other]) => other)).toEqual([name]);
    expect(type.name).toBe(name);
  });

  it('is known to a second copy of the package, as the same kind', () => {
    const copy = secondCopy();
    expect(copy['LockError']).not.toBe(LockError);
    expect(error instanceof copy['LockError']!).toBe(true);
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
    expect(value instanceof LockError).toBe(false);
    expect(value instanceof LockTimeoutError).toBe(false);
  });

  it('can be extended: the child is known as its parents, and strangers not as the child', () => {
    class OutOfStock extends LockTimeoutError {}
    const error = new OutOfStock('m');
    expect(error).toBeInstanceOf(OutOfStock);
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).not.toBeInstanceOf(StoreError);
    expect(new LockTimeoutError('m')).not.toBeInstanceOf(OutOfStock);
  });

  it('carries what belongs to its kind', () => {
    expect(new LockLostError('m', { result: { id: 1 } }).result).toEqual({ id: 1 });
    expect(new LockAbortedError('m', { reason: 'signal' }).reason).toBe('signal');
    expect(new QuorumError('m', { votes: ['granted', cause] }).votes).toEqual(['granted', cause]);
  });

  it('shows no more of itself than it should in a log', () => {
    expect(Object.keys(new LockTimeoutError('m', { key })).sort()).toEqual(['code', 'holder', 'holderLabel', 'key', 'name']);
  });
});

describe('what a driver rejects with', () => {
  it('stays what it is, and is told the key that it was about', () => {
    const error = asStoreError(new StoreError('m', { transient: true, cause }), key);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: 'm', key, transient: true, cause });
    const votes = new QuorumError('m', { votes: [] });
    expect(asStoreError(votes, key)).toBe(votes);
    expect(asStoreError(new StoreError('m', { transient: true, key: 'other' }), key).key).toBe('other');
  });

  it.each([new TypeError('x is undefined'), 'a text', undefined])(
    'and is none of ours is a StoreError that no retry mends: %p',
    (fault) => {
      const error = asStoreError(fault, key);
      expect(error).toBeInstanceOf(StoreError);
      expect(error.cause).toBe(fault);
      expect(error.message).toContain(key);
      expect(error.transient).toBe(false);
    },
  );

  it('may be mended by asking again only if it says so', () => {
    expect(new QuorumError('m', { votes: [] }).transient).toBe(true);
    expect(new LockTimeoutError('m').transient).toBe(false);
    expect(new StoreError('m', { transient: true }).transient).toBe(true);
    expect(new StoreError('m', { transient: false }).transient).toBe(false);
    expect(new LockConfigError('m').transient).toBe(false);
  });
});
