import { filesIn, read } from '../support/markdown.js';

interface Row {
  group: string;
  where: string;
  kind: 'aboveAndBelow' | 'way';
}

const ROW = /^(aboveAndBelow|way)\(\s*'([^']+)',\s*'([^']+)',/gm;

/** The list of docs/integrations.md, from the calls of `aboveAndBelow` and `way` in the specs beside this file. */
export function integrationsList(): string {
  const rows = filesIn('test/integrations')
    .filter((file) => file.endsWith('.spec.ts'))
    .sort()
    .flatMap(rowsOf);
  const groups = [...new Set(rows.map(({ group }) => group))].sort((a, b) => a.localeCompare(b));
  return groups
    .map((group) =>
      partOf(
        group,
        rows.filter((row) => row.group === group),
      ),
    )
    .join('\n\n');
}

function partOf(group: string, rows: Row[]): string {
  const lines = rows
    .sort((a, b) => a.where.localeCompare(b.where))
    .map(({ where, kind }) => `- ${where}${kind === 'aboveAndBelow' ? '†' : ''}`);
  return `**${group}**\n\n${lines.join('\n')}`;
}

function rowsOf(spec: string): Row[] {
  return [...read(spec).matchAll(ROW)].map(([, kind, group = '', where = '']) => ({ group, where, kind: kind as Row['kind'] }));
}
