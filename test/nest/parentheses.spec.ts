import { COMPILERS, run } from './compiled.js';
import { refusalOf } from './refusal.js';

const imports = `import { DistributedLock, LeaderOnly, ReadLock, Semaphore, WriteLock } from 'nestjs-distributed-lock';\n`;
const DECORATORS = ['DistributedLock', 'ReadLock', 'WriteLock', 'Semaphore', 'LeaderOnly'];
const EXAMPLES: Record<string, string> = { Semaphore: '{ permits: 5 }', LeaderOnly: "'jobs'" };

/** Where a decorator may stand that locks nothing there, and what is said about it. */
const PLACES: [place: string, source: (decorator: string) => string, message: RegExp][] = [
  ['a class', (lock) => `${lock} class Shop { async buy() {} }`, / on class Shop: only methods can be locked, not whole classes/],
  [
    'a class without a name',
    (lock) => `export default ${lock} class { async buy() {} }`,
    / on class .*: only methods can be locked, not whole/,
  ],
  ['an arrow function in a property', (lock) => `class Shop { ${lock} buy = async () => 1; }`, / on Shop\.buy: only methods .*fields/],
  ['a static arrow function', (lock) => `class Shop { ${lock} static buy = async () => 1; }`, / on Shop\.buy: a static method/],
  ['a static method', (lock) => `class Shop { ${lock} static async buy() {} }`, / on Shop\.buy: a static method/],
  ['a getter', (lock) => `class Shop { ${lock} get buy() { return async () => 1; } }`, / on Shop\.buy: only methods .*getters/],
  ['a setter', (lock) => `class Shop { ${lock} set buy(value: unknown) {} }`, / on Shop\.buy: only methods .*setters/],
  ['a parameter', (lock) => `class Shop { async buy(${lock} sku: string) {} }`, / on Shop\.buy: only methods .*parameters/],
  [
    "a constructor's parameter",
    (lock) => `class Shop { constructor(${lock} sku: string) {} }`,
    / on Shop's constructor: only methods .*parameters/,
  ],
];
const STANDARD = [
  ['a method', 'class Shop { @lock async buy() {} }'],
  ['a static method', 'class Shop { @lock static async buy() {} }'],
  ['a property', 'class Shop { @lock buy = async () => 1; }'],
  ['an accessor', 'class Shop { @lock accessor buy = async () => 1; }'],
  ['a getter', 'class Shop { @lock get buy() { return 1; } }'],
  ['a class', '@lock class Shop {}'],
] as const;

// The decorators share what they refuse: one of them is enough for the slower compiler.
describe.each(COMPILERS)('compiled by $name', ({ name, legacy, standard }) => {
  const decorators = name === 'tsc' ? ['DistributedLock'] : DECORATORS;

  describe.each(decorators)('@%s without parentheses', (decorator) => {
    it('is refused on a method when the class is defined', () => {
      const source = `${imports} class StockService { @${decorator} async reduce() {} }`;
      const example = `@${decorator}(${EXAMPLES[decorator] ?? ''})`;
      expect(refusalOf(() => run(legacy(source)))).toBe(`@${decorator} on StockService.reduce needs parentheses: ${example}.`);
    });

    it('is refused on a method that a symbol names', () => {
      const source = `${imports} const buy = Symbol('buy'); class Shop { @${decorator} async [buy]() {} }`;
      expect(refusalOf(() => run(legacy(source)))).toContain(`@${decorator} on Shop.Symbol(buy) needs parentheses`);
    });

    it.each(PLACES)('is refused on %s', (_place, source, message) => {
      const refusal = refusalOf(() => run(legacy(imports + source(`@${decorator}`))));
      expect(refusal).toMatch(message);
      expect(refusal).toContain(`@${decorator} on `);
    });

    it.each(STANDARD)('is refused as an ECMAScript decorator on %s', (_place, source) => {
      const refusal = refusalOf(() => run(standard(imports + source.replace('@lock', `@${decorator}`))));
      expect(refusal).toMatch(/needs legacy decorators.*"experimentalDecorators"/);
      expect(refusal).toContain(`@${decorator}`);
    });
  });

  describe.each(decorators)('@%s with parentheses', (decorator) => {
    const lock = `@${decorator}(${EXAMPLES[decorator] ?? ''})`;

    it.each(PLACES)('is refused on %s', (_place, source, message) => {
      const refusal = refusalOf(() => run(legacy(imports + source(lock))));
      expect(refusal).toMatch(message);
      expect(refusal).toContain(`@${decorator}() on `);
    });

    it.each(STANDARD)('is refused as an ECMAScript decorator on %s', (_place, source) => {
      const refusal = refusalOf(() => run(standard(imports + source.replace('@lock', lock))));
      expect(refusal).toMatch(/needs legacy decorators.*"experimentalDecorators"/);
    });

    it('is accepted on a method', () => {
      const source = `${imports} export class Shop { ${lock} async buy(): Promise<void> {} }`;
      expect(run(legacy(source))).toHaveProperty('Shop');
    });
  });
});
