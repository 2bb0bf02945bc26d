// What `nest add` runs after it has installed the package. It imports nothing: the Nest CLI brings the machinery, the user's project the compiler.
import { createRequire } from 'node:module';
import { dirname, posix } from 'node:path';
import { addShutdownHooks, rootModuleName } from './bootstrap.js';
import { addDependency } from './dependencies.js';
import { addLockModule, hasModuleClass, lockModuleToPaste, type Setup, type StoreName, STORES } from './root-module.js';
import { type TypeScript, Unusual } from './source.js';

export interface Options {
  store?: StoreName;
  module?: string;
  skipShutdownHooks?: boolean;
  sourceRoot?: string;
  skipInstall?: boolean;
}

/** The part of @angular-devkit/schematics that is used here. */
export interface Tree {
  read(path: string): Buffer | null;
  overwrite(path: string, content: string): void;
  getDir(path: string): { visit(visitor: (path: string) => void): void };
}

export interface Context {
  readonly logger: { info(message: string): void; warn(message: string): void };
  addTask(task: { toConfiguration(): object }): unknown;
}

interface Source {
  path: string;
  text: string;
}

export function nestAdd(options: Options): (tree: Tree, context: Context) => void {
  return (tree, context) => {
    const { store = 'redis', sourceRoot = 'src', skipShutdownHooks = false } = options;
    const sources = sourcesIn(tree, sourceRoot);
    const present = sources.find(({ text }) => /\bDistributedLockModule\s*\.\s*forRoot/.test(text));
    if (present) context.logger.info(`DistributedLockModule is there already, in ${present.path.slice(1)}: left as it is.`);
    const main = sources.find(({ path }) => path === `/${posix.join(sourceRoot, 'main.ts')}`);
    const typescript = compilerOf();
    const setup = { store, namespace: namespaceOf(tree, sourceRoot) };
    if (!present)
      attempt(context, () => addToModule(tree, typescript, { ...options, sourceRoot }, setup, sources, main), lockModuleToPaste(setup));
    const server = STORES[store];
    if (!present && server) {
      addClient(tree, context, server, options.skipInstall ?? false);
      context.logger.info(`The app starts when ${server.url} has the address of your server.`);
    }
    if (!skipShutdownHooks)
      attempt(
        context,
        () => addToMain(tree, typescript, main),
        'app.enableShutdownHooks(); // in main.ts: a stopping app waits for its locked methods',
      );
  };
}

/** Warns where a file cannot be edited, and says what to write there: the rest is done all the same. */
function attempt(context: Context, edit: () => void, toPaste: string): void {
  try {
    edit();
  } catch (error) {
    if (!(error instanceof Unusual)) throw error;
    context.logger.warn(`${error.message}. Please add this yourself:\n\n${toPaste}\n`);
  }
}

/** The text without a byte order mark. */
function manifestOf(tree: Tree): string | undefined {
  return tree
    .read('/package.json')
    ?.toString()
    .replace(/^\uFEFF/, '');
}

/** The app's name, by package.json; in a monorepo of Nest it is the app's folder. */
function namespaceOf(tree: Tree, sourceRoot: string): string | undefined {
  const { name } = JSON.parse(manifestOf(tree) ?? '{}') as { name?: string };
  const app = /^apps\/([^/]+)\//.exec(sourceRoot)?.[1] ?? name;
  return app && `${app}:`;
}

function addToModule(
  tree: Tree,
  typescript: TypeScript | undefined,
  { module: given, sourceRoot }: Options,
  setup: Setup,
  sources: Source[],
  main: Source | undefined,
): void {
  if (!typescript) throw new Unusual('The root module was not changed: no TypeScript compiler is found from here');
  const className = (main && rootModuleName(typescript, main.text)) ?? 'AppModule';
  const ofPath = (path: string): Source => ({ path: `/${path}`, text: tree.read(`/${path}`)?.toString() ?? '' });
  const [module, another] = given
    ? [ofPath(posix.join(given))].filter(({ text }) => text !== '')
    : sources.filter(({ text }) => text.includes(className) && hasModuleClass(typescript, text, className));
  if (!module && given) throw new Unusual(`There is no ${posix.join(given)}`);
  if (!module) throw new Unusual(`The root module was not found: no class ${className} with @Module() is in ${sourceRoot}`);
  if (another) {
    const files = `${module.path.slice(1)} and in ${another.path.slice(1)}`;
    throw new Unusual(`Which is the root module? There is a ${className} in ${files} (--module says it)`);
  }
  tree.overwrite(
    module.path,
    naming(module.path, () => addLockModule(typescript, module.text, setup, className)),
  );
}

function addToMain(tree: Tree, typescript: TypeScript | undefined, main: Source | undefined): void {
  if (!main || !typescript) throw new Unusual('There is no main.ts that could be changed');
  const changed = naming(main.path, () => addShutdownHooks(typescript, main.text));
  if (changed !== main.text) tree.overwrite(main.path, changed);
}

function addClient(tree: Tree, context: Context, { client, range }: { client: string; range: string }, skipInstall: boolean): void {
  const manifest = manifestOf(tree);
  if (manifest === undefined) return context.logger.warn(`There is no package.json here. Please install ${client} yourself.`);
  // All versions that are supported: npm takes the newest that suits the other packages, also those that are added later.
  const changed = addDependency(manifest, client, range);
  if (changed === manifest) return;
  tree.overwrite('/package.json', changed);
  if (skipInstall) return context.logger.info(`${client} is added to package.json, and not installed.`);
  // What NodePackageInstallTask of @angular-devkit/schematics is.
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options: { command: 'install', quiet: true, hideOutput: true } }) });
}

function sourcesIn(tree: Tree, folder: string): Source[] {
  const sources: Source[] = [];
  tree.getDir(`/${posix.join(folder)}`).visit((path) => {
    if (path.endsWith('.ts') && !/\.(d|spec|test)\.ts$/.test(path) && !path.includes('/node_modules/')) {
      sources.push({ path, text: tree.read(path)?.toString() ?? '' });
    }
  });
  return sources;
}

/** The compiler of the project, else of the Nest CLI that runs this. */
function compilerOf(): TypeScript | undefined {
  for (const folder of [process.cwd(), dirname(require.main?.filename ?? '')]) {
    try {
      const compiler = createRequire(`${folder}/any.js`)('typescript') as Partial<TypeScript>;
      if (compiler.createSourceFile) return compiler as TypeScript;
    } catch {
      // the next one may have it
    }
  }
  return undefined;
}

function naming<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Unusual)) throw error;
    throw new Unusual(`${path.slice(1)} was not changed: ${error.message}`);
  }
}
