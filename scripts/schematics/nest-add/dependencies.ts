interface Manifest {
  dependencies?: Record<string, string>;
  [field: string]: unknown;
}

const FIELDS = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];

/** The text of a package.json with one more dependency, unless it has it, of any version. */
export function addDependency(manifest: string, name: string, range: string): string {
  const parsed = JSON.parse(manifest) as Manifest;
  if (FIELDS.some((field) => (parsed[field] as Record<string, string> | undefined)?.[name] !== undefined)) return manifest;
  const dependencies = Object.entries({ ...parsed.dependencies, [name]: range });
  parsed.dependencies = Object.fromEntries(dependencies.sort(([a], [b]) => (a < b ? -1 : 1)));
  const indent = /^[ \t]+(?=")/m.exec(manifest)?.[0] ?? '  ';
  return JSON.stringify(parsed, undefined, indent) + (manifest.endsWith('\n') ? '\n' : '');
}

/**
 * The newest of the ranges that a package is made for, such as `^5.4.0 || ^6.0.0`, whose major version all others accept; the newest of all if there is
 * none. npm refuses each later install where two packages ask for different ones.
 */
export function rangeFor(ranges: string, others: readonly string[]): string {
  const newestFirst = ranges
    .split('||')
    .map((range) => range.trim())
    .reverse();
  return newestFirst.find((range) => others.every((other) => accepts(other, Number(/\d+/.exec(range)?.[0])))) ?? newestFirst[0]!;
}

/** The ranges that installed packages of a package.json ask for as a peer, by their names. */
export function peersOf(manifest: string, name: string, read: (path: string) => string | undefined): Map<string, string> {
  const parsed = JSON.parse(manifest) as Manifest;
  const installed = FIELDS.flatMap((field) => Object.keys(parsed[field] ?? {}));
  const peers = new Map<string, string>();
  for (const each of installed) {
    const { peerDependencies } = JSON.parse(read(`/node_modules/${each}/package.json`) ?? '{}') as {
      peerDependencies?: Record<string, string>;
    };
    const range = peerDependencies?.[name];
    if (range !== undefined) peers.set(each, range);
  }
  return peers;
}

function accepts(range: string, major: number): boolean {
  return range.split('||').some((part) =>
    [...part.matchAll(/([<>]=?|[\^~=])?\s*v?(\d+)[\w.*-]*/g)].every(([, sign = '', text]) => {
      const number = Number(text);
      if (sign === '<') return major < number;
      if (sign === '<=') return major <= number;
      return sign.startsWith('>') ? major >= number : major === number;
    }),
  );
}
