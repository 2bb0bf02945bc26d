import { filesIn, read } from '../support/markdown.js';

/** Names that mean the same in each file, or are of one file and its users. */
const CONVENTIONS = ['Kind', 'OpenOptions', 'Outcome', 'Refusal', 'Row', 'Verdict', 'isConflict', 'storeErrorOf'];

// The operator's page is a program of its own.
it('no two exported types or functions of lib have one name', () => {
  const files = new Map<string, string[]>();
  for (const file of filesIn('lib').filter((each) => /^(?!.*dashboard\/page\/).*(?<!\.d|generated)\.ts$/.test(each)))
    for (const [, name = ''] of read(file).matchAll(/^export (?:abstract |async )?(?:class|interface|type|enum|function\*?) (\w+)/gm))
      files.set(name, [...(files.get(name) ?? []), file]);
  const doubled = [...files].filter(([name, all]) => new Set(all).size > 1 && !CONVENTIONS.includes(name));
  expect(files.size).toBeGreaterThan(200);
  expect(doubled).toEqual([]);
});

it('nothing in lib bears the name `place`, which had six meanings: a store id, a target, a location, where something was called, a queue entry, a module', () => {
  const text = /\/\*.*?\*\/|(?<!:)\/\/.*?$|'[^'\n]*'|`[^`]*`/gms;
  const named = filesIn('lib').filter(
    (file) => /(?<!\.d|generated)\.ts$/.test(file) && /\bplace(s|Of)?\b/i.test(read(file).replace(text, '')),
  );
  expect(named).toEqual([]);
});

it('the root entry exports what an app writes, at most 60 names', () => {
  const [root, core] = ['lib/index.ts', 'lib/core.ts'].map((file) =>
    [...read(file).matchAll(/^export (?:type )?\{([^}]+)\}/gm)].flatMap(([, names = '']) => names.match(/\w+(?=,|\s*$)/g) ?? []),
  );
  expect(root).toContain('DistributedLock');
  expect(new Set(root).size).toBe(root!.length);
  expect(root!.length).toBeLessThanOrEqual(60);
  const others = ['runStandby', 'locksToken', 'waitGraph', 'Telemetry', 'DoctorReport', 'KeyReport'];
  expect(core).toEqual(expect.arrayContaining(others));
  expect(root!.filter((name) => others.includes(name))).toEqual([]);
});
