// The tables of mutants: each one still fits the library. `npm run nightly -- mutants` shows that the tests detect them.
import { existsSync, readFileSync } from 'node:fs';
import { filesOf, mutantsOf, readTables, type Mutant } from './tables.mjs';

const readFile = (file: string): string => readFileSync(file, 'utf8');

/** Why a mutant could not be tried. */
function problemsOf(mutant: Mutant): string[] {
  const at = `${mutant.area}.diff:${mutant.line}`;
  if (!existsSync(mutant.spec)) return [`${at}: there is no ${mutant.spec}`];
  try {
    filesOf(mutant, readFile);
    return [];
  } catch (error) {
    return [`${at}: ${(error as Error).message}`];
  }
}

it('each mutant applies, and names a suite', () => {
  const mutants = readTables('test/mutants');
  expect(mutants.length).toBeGreaterThan(0);
  expect(mutants.flatMap(problemsOf)).toEqual([]);
});

describe('a mutant', () => {
  const text = 'one();\n  two();\nthree();\n  four(1);\nfour(2);\n';
  const change = (...edits: string[]): string | undefined => {
    const entry = `G1: a defect: it does not lock\ntest: test/a.spec.ts -t 'it's a test'\n${edits.join('\n')}\n`;
    const [mutant] = mutantsOf('area', `\n${entry}`);
    expect(mutant).toMatchObject({
      line: 2,
      guarantee: 'G1',
      defect: 'a defect: it does not lock',
      spec: 'test/a.spec.ts',
      test: `it's a test`,
    });
    return filesOf(mutant!, () => text).get('a.ts');
  };

  it.each([
    ['replaces a part of a line', ['file: a.ts\n-two\n+2'], text.replace('two', '2')],
    ['removes a part of a line', ['file: a.ts\n-four(1)'], text.replace('four(1)', '')],
    ['removes a line', ['file: a.ts\n-two();'], text.replace('  two();\n', '')],
    ['removes lines', ['file: a.ts\n-one();\n-  two();'], text.replace('one();\n  two();\n', '')],
    ['empties a line', ['file: a.ts\n-  two();\n+'], text.replace('  two();', '')],
    ['inserts a line between lines that stay', ['file: a.ts\n three();\n+3\n   four('], text.replace('three();', 'three();\n3')],
    ['edits two places', ['file: a.ts\n-one\n+1', 'file: a.ts\n-two\n+2'], text.replace('one', '1').replace('two', '2')],
  ])('%s', (_, edits, result) => {
    expect(change(...edits)).toBe(result);
  });

  it.each([
    ['its text is missing', 'file: a.ts\n-five', /^the text to find is in a\.ts 0 times, not once:\nfive$/],
    ['its text is there twice', 'file: a.ts\n-four\n+five', /^the text to find is in a\.ts 2 times, not once:\nfour$/],
    ['it finds no text', 'file: a.ts\n+five', /^the text to find is in a\.ts 0 times/],
    ['it names no file', '-one\n+1', /^area\.diff:2: this is not an entry as README\.md describes it:\nG1: a defect/],
  ])('is refused if %s', (_, edit, message) => {
    expect(() => change(edit)).toThrow(message);
  });
});
