// The codes at the end of errors and log lines: all are documented, and all that are documented exist.
import { LockError, Locks, type LocksOptions } from 'nestjs-distributed-lock/core';
import * as core from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { WARNINGS } from '../../lib/core/model/lock-log.js';
import { filesIn, read } from '../support/markdown.js';

const sources = filesIn('lib').filter((file) => /(?<!generated)\.ts$/.test(file) && !file.startsWith('lib/dashboard/page/'));
const library = sources.map(read).join('\n');
const allOf = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, found = '']) => found))].sort();
const headings = (page: string, prefix: string) => allOf(read(page), new RegExp(`^### (${prefix}_\\w+)$`, 'gm'));

/** Each section of a page that is named by a code, with its text. */
const linePages = read('docs/troubleshooting.md').matchAll(/^### (NDL_\w+)\n(.*?)(?=^##)/gms);
const lines = [...linePages].map(([, code = '', text = '']): [string, string] => [code, text]);

describe('the codes of errors', () => {
  const classes = Object.values(core).filter((each) => typeof each === 'function' && Object.hasOwn(each, 'code'));
  const ofClasses = classes.map((each) => (each as unknown as { code: string }).code);

  it('are the headings of docs/errors.md', () => {
    const ofProblems = allOf(library, /\bconfigError\(\s*'(\w+)'/g).map((problem) => `LOCK_CONFIG_${problem}`);
    expect(ofProblems.length).toBeGreaterThan(5);
    expect(headings('docs/errors.md', 'LOCK')).toEqual([...ofClasses, ...ofProblems].sort());
  });

  it('end each message: a library error is a LockError, and a mistake of the program says which kind it is', () => {
    const files = sources.filter((file) => /new LockConfigError\(/.test(read(file)));
    expect(files).toEqual(['lib/core/model/errors.ts']);
    for (const type of classes as (new (message: string, options: object) => LockError)[]) {
      const error = new type('It failed.', {});
      expect(error.message).toBe(`It failed. [${error.code}]`);
      expect(error).toBeInstanceOf(LockError);
    }
    expect(() => new Locks(memoryStore(), { colour: 5 } as LocksOptions)).toThrow(/ \[LOCK_CONFIG_UNKNOWN_OPTION\]$/);
  });
});

describe('the codes of log lines', () => {
  it('are the headings of docs/troubleshooting.md', () => {
    expect(headings('docs/troubleshooting.md', 'NDL')).toEqual(Object.keys(WARNINGS).sort());
  });

  it.each(Object.keys(WARNINGS))('%s is written by the library', (code) => expect(library.includes(`'${code}'`)).toBe(true));

  it('are on every line at level warn and error: nothing but the log calls a logger', () => {
    const callers = sources.filter((file) => /\b(logger|console|Logger\([^)]*\))\.(warn|error)\(/.test(read(file)));
    expect(callers).toEqual(['lib/core/model/lock-log.ts']);
    expect(library).not.toMatch(/\.write\('(warn|error)'/);
  });

  it.each(lines.filter(([, text]) => text.startsWith('`')))('%s: the line in the docs is one of the library', (_code, text) => {
    const [quoted = ''] = /(?<=^`)[^`]+/.exec(text)!;
    const phrases = quoted.split(/…|Redis|["():;.]/).map((part) => part.trim());
    const [longest = ''] = phrases.sort((one, other) => other.length - one.length);
    expect(longest.length).toBeGreaterThan(6);
    expect({ longest, isFound: library.includes(longest) }).toEqual({ longest, isFound: true });
  });
});

describe('silence', () => {
  async function linesOf(options: LocksOptions) {
    const written: string[] = [];
    const locks = new Locks(memoryStore(), { logger: { warn: (line) => void written.push(line), error: () => undefined }, ...options });
    await locks.acquire('order:42');
    await locks.acquire('order:43');
    await locks.forceRelease('order:42', { reason: 'stuck', grace: 0 });
    await locks.close();
    return written.map((line) => /\[(\w+)\]$/.exec(line)?.[1]);
  }

  it('turns off the lines with these codes, and no others', async () => {
    expect(await linesOf({})).toEqual(['NDL_TAKEN', 'NDL_LEASE_LOST', 'NDL_NOT_RELEASED']);
    expect(await linesOf({ silence: ['NDL_TAKEN', 'NDL_NOT_RELEASED'] })).toEqual(['NDL_LEASE_LOST']);
  });

  it.each([[['NDL_SLOW_WIAT']], [['LOCK_TIMEOUT']], [['toString']], ['NDL_SLOW_WAIT']])('of %p is refused', (silence) => {
    const open = () => new Locks(memoryStore(), { silence } as LocksOptions);
    expect(open).toThrow(/"silence" must be a list of codes of warnings, .* \[LOCK_CONFIG_OPTION\]$/s);
  });
});
