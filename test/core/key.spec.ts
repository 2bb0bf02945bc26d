import { Locks, LockConfigError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { checkKey } from '../../lib/core/model/key.js';

const good = [
  'a',
  ' ',
  'order:42',
  'Größe / 大小 / 🔒',
  'a'.repeat(512),
  '{42}',
  'order:{42}',
  '{42}:order',
  'order:{4 2}:lock',
  '__proto__',
  '%7B',
  '*?[a-z]',
  '"\'\\',
];

const bad: [string, unknown, RegExp][] = [
  ['undefined', undefined, /must be a string, not undefined/],
  ['null', null, /must be a string, not null/],
  ['a number', 42, /must be a string, not number/],
  ['an object', { id: 1 }, /must be a string, not object/],
  ['an array', ['a'], /must be a string, not object/],
  ['a symbol', Symbol('a'), /must be a string, not symbol/],
  ['nothing', '', /must not be empty/],
  ['513 characters', 'a'.repeat(513), /at most 512 characters, this one has 513/],
  ['a line break', 'a\nb', /control characters: "a\\nb"/],
  ['a zero byte', 'a\0', /control characters/],
  ['a tabulator', '\ta', /control characters/],
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
];

describe('a key', () => {
  it.each(good)('may be %j', (key) => expect(checkKey(key)).toBe(key));

  it.each(bad)('must not be or hold %s', (_what, key, message) => {
    expect(() => checkKey(key)).toThrow(LockConfigError);
    expect(() => checkKey(key)).toThrow(message);
  });
});

describe('Locks', () => {
  const locks = new Locks(memoryStore());

  it.each(bad)('refuse as a key what is or holds %s, before they ask the store', async (_what, key, message) => {
    expect(() => locks.mutex(key as string)).toThrow(message);
    await expect(locks.acquire(key as string)).rejects.toThrow(LockConfigError);
    await expect(locks.tryAcquire(key as string)).rejects.toThrow(LockConfigError);
    await expect(locks.using(key as string, () => undefined)).rejects.toThrow(LockConfigError);
  });

  it.each([
    ['too long together', 'a'.repeat(500), 'b'.repeat(20)],
    ['two hash tags together', '{a}', '{b}'],
    ['a control character in the namespace', 'a\n', 'b'],
  ])('refuse a namespace and a key that are %s', (_what, namespace, key) => {
    expect(() => new Locks(memoryStore(), { namespace }).mutex(key)).toThrow(LockConfigError);
  });

  it('put the namespace before the key, and nothing else', async () => {
    const lease = await new Locks(memoryStore(), { namespace: 'shop:' }).acquire('order:{42}');
    expect(lease.key).toBe('shop:order:{42}');
    await lease.release();
  });
});
