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
