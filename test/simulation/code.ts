import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import vm from 'node:vm';
import { build } from 'esbuild';
import { filesOf, readTables, type Mutant } from '../mutants/tables.mjs';

const root = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(resolve(root, file), 'utf8');

/** The code that runs in each process, with a defect of the tables of mutants if one is named. */
export async function codeOf(defect?: string): Promise<vm.Script> {
  const changed = defect === undefined ? new Map<string, string>() : filesOf(mutantOf(defect), read);
  const { outputFiles } = await build({
    entryPoints: [resolve(root, 'test/simulation/inside.ts')],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    write: false,
    external: ['ioredis'],
    plugins: [
      {
        name: 'defect',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const contents = changed.get(relative(root, path));
            return contents === undefined ? undefined : { contents, loader: 'ts' };
          }),
      },
    ],
  });
  return new vm.Script(`(function (module, exports, require) {${outputFiles[0]!.text}\n})`, { filename: 'inside.cjs' });
}

function mutantOf(defect: string): Mutant {
  const found = readTables(resolve(root, 'test/mutants')).filter((mutant) =>
    [mutant.defect, `${mutant.area}: ${mutant.defect}`].includes(defect),
  );
  if (found.length !== 1) throw new Error(`${found.length} mutants are called "${defect}".`);
  return found[0]!;
}
