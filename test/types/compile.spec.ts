import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(__dirname, '../..');
const imports = `
import { CronLock, Locks, DistributedLock, LeaderOnly, ReadLock, Semaphore, WriteLock, type Lock, type OnTimeout, type ReadWriteLock, type UsingOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
const locks = new Locks(memoryStore());
const five = async () => 5;
`;

const accepted: Record<string, string> = {
  'any decorator with its options':
    'class Shop { @ReadLock({ policy: "readers" }) @WriteLock({ value: "a" }) @Semaphore({ permits: 2, count: 1 }) @LeaderOnly("shop", { keyTimeout: 5000 }) async buy() {} }',
  "'skip' on methods that may return undefined":
    'class Shop { @DistributedLock({ onTimeout: "skip" }) async buy() {} @DistributedLock<Shop["sell"]>({ onTimeout: "skip" }) async sell(): Promise<number | undefined> { return 5; } }',
  "'skip' on a stream": 'class Shop { @DistributedLock({ onTimeout: "skip" }) async *list(): AsyncGenerator<number> { yield 5; } }',
  'a choice of onTimeout that may skip':
    'const onTimeout: OnTimeout = locks ? "skip" : "throw"; class Shop { @DistributedLock({ onTimeout }) async buy() { return 5; } }',
  'a cron lock': 'class Shop { @CronLock({ minHold: 5000, value: "report" }) async report() {} }',
  'a key function that declares no types and needs none':
    'class Shop { @DistributedLock({ key: (sku, ...rest) => [String(sku), rest.length] }) async buy(_sku: string, _count: number) {} }',
  'locks of all kinds as one type':
    'const permit: Lock = locks.semaphore("a", { permits: 2 }); const { read, write }: ReadWriteLock = locks.readWriteLock("b"); void [permit.key, read, write];',
};
const refused: Record<string, [string, RegExp]> = {
  'a sync method': [
    'class Shop { @DistributedLock() buy() { return 5; } }',
    /A locked method must return a Promise, an Observable or an async iterable: make it async/,
  ],
  'a key function that takes something else than the method': [
    'class Shop { @DistributedLock({ key: (id: number) => id }) async buy(_sku: string) {} }',
    /key: its parameters are not those of this method/,
  ],
  'a key function that uses what it does not declare': [
    'class Shop { @DistributedLock({ key: (order) => order.id }) async buy(_order: { id: number }) {} }',
    /'order' is of type 'unknown'/,
  ],
  "'skip' on a method whose result is never undefined": [
    'class Shop { @DistributedLock({ onTimeout: "skip" }) async buy() { return 5; } }',
    /onTimeout: 'skip' resolves to undefined, which the result type of this method does not allow/,
  ],
  "'skip' on a named method whose result is never undefined": [
    'class Shop { @DistributedLock<Shop["buy"]>({ onTimeout: "skip" }) async buy() { return 5; } }',
    /'"skip"' is not assignable to type/,
  ],
  "'skip' on a semaphore whose result is never undefined": [
    'class Shop { @Semaphore({ permits: 2, onTimeout: "skip" }) async buy() { return 5; } }',
    /onTimeout: 'skip' resolves to undefined/,
  ],
  'a cron lock on a method with a result': [
    'class Shop { @CronLock({ minHold: 5000 }) async report() { return 5; } }',
    /onTimeout: 'skip' resolves to undefined/,
  ],
  'a cron lock that waits': [
    'class Shop { @CronLock({ minHold: 5000, waitTimeout: 5 }) async report() {} }',
    /'waitTimeout' does not exist/,
  ],
  'a path that leads nowhere': [
    'class Shop { @DistributedLock({ paramLock: ["0.id", "0.sku"] }) async buy(_order: { id: number }) {} }',
    /paramLock: \\?"0\.sku\\?" leads nowhere in the parameters of this method/,
  ],
  'a wrong type of option': [
    'class Shop { @DistributedLock({ keyTimeout: "10s" }) async buy() {} }',
    /'string' is not assignable to type 'number'/,
  ],
  'a sync method under any decorator': [
    'class Shop { @LeaderOnly("shop") buy() { return 5; } }',
    /A locked method must return a Promise, an Observable or an async iterable: make it async/,
  ],
  "another decorator's option": ['class Shop { @ReadLock({ permits: 5 }) async buy() {} }', /'permits' does not exist/],
  'a semaphore without permits': ['class Shop { @Semaphore({ value: "a" }) async buy() {} }', /'permits' is missing/],
  'an option of a lock for the leader': [
    'class Shop { @LeaderOnly("shop", { waitTimeout: 5 }) async buy() {} }',
    /'waitTimeout' does not exist/,
  ],
  'an unknown option': ['class Shop { @DistributedLock({ ttl: 10 }) async buy() {} }', /'ttl' does not exist/],
  "a result with 'skip' that is never undefined": [
    'const result: Promise<number> = locks.using("key", five, { onTimeout: "skip" });',
    /'undefined' is not assignable to type 'number'/,
  ],
  "a result with a choice of 'skip' that is never undefined": [
    'const onTimeout = locks ? "skip" : "throw"; const result: Promise<number> = locks.using("key", five, { onTimeout });',
    /'undefined' is not assignable to type 'number'/,
  ],
  'a result with options that may skip which is never undefined': [
    'const options: UsingOptions = { onTimeout: "skip" }; const result: Promise<number> = locks.using("key", five, options);',
    /is not assignable to type '(Promise<)?number/,
  ],
};

/** One program for all, since the types of Nest take seconds to read. */
function compile() {
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail },
  )!;
  const options = { ...config.options, noUnusedLocals: false };
  const sources = [...Object.values(accepted), ...Object.values(refused).map(([source]) => source)];
  const snippets = new Map(sources.map((source, index) => [join(__dirname, `snippet-${index}.ts`), `${imports}${source}\nexport {};\n`]));
  const files = readdirSync(__dirname).filter((name) => name.endsWith('.types.ts'));
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => snippets.has(name) || fileExists(name);
  host.readFile = (name) => snippets.get(name) ?? readFile(name);
  host.getSourceFile = (name, ...rest) => {
    const snippet = snippets.get(name);
    return snippet === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, snippet, ts.ScriptTarget.ES2022);
  };
  const names = new Map([...snippets].map(([name, text]) => [text.slice(imports.length, -'\nexport {};\n'.length), name]));
  const program = ts.createProgram([...snippets.keys(), ...files.map((name) => join(__dirname, name))], options, host);
  return (what: string) => {
    const file = program.getSourceFile(names.get(what) ?? join(__dirname, what));
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  };
}

function fail({ messageText }: ts.Diagnostic): never {
  throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the types', () => {
  let problemsOf: (what: string) => string[];
  beforeAll(() => (problemsOf = compile()));

  it.each(Object.entries(accepted))('accept %s', (_what, source) => {
    expect(problemsOf(source)).toEqual([]);
  });

  it.each(Object.entries(refused))('refuse %s', (_what, [source, message]) => {
    expect(problemsOf(source)).toEqual([expect.stringMatching(message)]);
  });

  it.each(readdirSync(__dirname).filter((name) => name.endsWith('.types.ts')))('are as %s expects', (name) => {
    expect(problemsOf(name)).toEqual([]);
  });
});
