import { filesIn, read } from '../support/markdown.js';

/** The list of docs/integrations.md, from the calls of `aboveAndBelow` and `way` in the specs beside this file. */
export function integrationsList(): string {
  const specs = filesIn('test/integrations').filter((file) => file.endsWith('.spec.ts'));
  const calls = specs.flatMap((spec) => [...read(spec).matchAll(/^(aboveAndBelow|way)\(\s*'([^']+)',\s*'([^']+)',/gm)]);
  const groups = new Map<string, string[]>();
  for (const [, kind, group = '', where = ''] of calls.sort(([, , , a = ''], [, , , b = '']) => a.localeCompare(b)))
    groups.set(group, [...(groups.get(group) ?? []), `- ${where}${kind === 'way' ? '' : '†'}`]);
  const parts = [...groups].sort(([a], [b]) => a.localeCompare(b));
  return parts.map(([group, lines]) => `**${group}**\n\n${lines.join('\n')}`).join('\n\n');
}
