import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(__dirname, '../..');
const files = readdirSync(__dirname).filter((name) => name.endsWith('.types.ts'));
const imports = `
import { CronLock, Locks, DistributedLock, DistributedLockModule, LeaderOnly, ReadLock, Semaphore } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
const locks = new Locks(memoryStore());
`;

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
  'a function in place of a result of another type': [
    'class Shop { @DistributedLock({ onTimeout: () => "busy" }) async buy() { return 5; } }',
    /onTimeout: its result is not of the result type of this method/,
  ],
  'a function that may give no result in place of one': [
    'class Shop { @Semaphore({ permits: 2, onTimeout: async () => undefined }) async buy() { return { sold: 5 }; } }',
    /onTimeout: its result is not of the result type of this method/,
  ],
  'a function in place of a result of another type, on a named method': [
    'class Shop { @DistributedLock<Shop["buy"]>({ onTimeout: () => "busy" }) async buy(_sku: string): Promise<"sold" | "gone"> { return "sold"; } }',
    /'"busy"' is not assignable to type/,
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
  'a sync method under any decorator': [
    'class Shop { @LeaderOnly("shop") buy() { return 5; } }',
    /A locked method must return a Promise, an Observable or an async iterable: make it async/,
  ],
  'a static method of a class with a private constructor, under any decorator': [
    'class Shop { private constructor() {} @LeaderOnly("shop") static async buy() {} }',
    /A static method has no instance that Nest could give a lock to/,
  ],
  'a semaphore of no permits': ['class Shop { @Semaphore({ permits: 0 }) async buy() {} }', /A semaphore has at least one permit/],
  'a semaphore of less than no permits, in a program': ['locks.semaphore("key", { permits: -1 });', /A semaphore has at least one permit/],
  forFeature: ['DistributedLockModule.forFeature([]);', /forRoot\(\) is global: import it once, in the root module/],
  "another decorator's option": ['class Shop { @ReadLock({ permits: 5 }) async buy() {} }', /'permits' does not exist/],
  'a semaphore without permits': ['class Shop { @Semaphore({ value: "a" }) async buy() {} }', /'permits' is missing/],
  'an unknown option': ['class Shop { @DistributedLock({ ttl: 10 }) async buy() {} }', /'ttl' does not exist/],
};

/** One program for all, since the types of Nest take seconds to read: what the compiler says of each snippet and each file. */
function compile(): (name: string) => string[] {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail };
  const { options } = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.json'), { noUnusedLocals: false, types: ['node'] }, host)!;
  const snippets = new Map(Object.entries(refused).map(([what, [source]]) => [pathOf(what), `${imports}${source}\nexport {};\n`]));
  const compiler = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = compiler;
  compiler.fileExists = (name) => snippets.has(name) || fileExists(name);
  compiler.readFile = (name) => snippets.get(name) ?? readFile(name);
  compiler.getSourceFile = (name, ...rest) => {
    const snippet = snippets.get(name);
    return snippet === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, snippet, ts.ScriptTarget.ES2022);
  };
  const program = ts.createProgram([...snippets.keys(), ...files.map(pathOf)], options, compiler);
  return (name) => {
    const file = program.getSourceFile(pathOf(name));
    const diagnostics = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  };
}

function pathOf(name: string): string {
  return join(__dirname, name.endsWith('.ts') ? name : `${name}.ts`);
}

function fail({ messageText }: ts.Diagnostic): never {
  throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the types', () => {
  let problemsOf: (name: string) => string[];
  beforeAll(() => (problemsOf = compile()));

  it.each(Object.entries(refused))('refuse %s', (what, [, message]) => {
    expect(problemsOf(what)).toEqual([expect.stringMatching(message)]);
  });

  it.each(files)('are as %s expects', (name) => {
    expect(problemsOf(name)).toEqual([]);
  });
});
