// Names the modules of the API pages as users import them: nestjs-distributed-lock/redis, and not stores/redis/redis.store.
import { readFileSync } from 'node:fs';
import { Converter } from 'typedoc';

export function load({ converter }) {
  const { name, exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const names = new Map(
    Object.entries(exports).map(([entry, to]) => [to.import?.types.replace(/^\.\/dist\/esm\/|\.d\.ts$/g, ''), name + entry.slice(1)]),
  );
  converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name;
  });
}
