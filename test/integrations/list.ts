import { filesIn, read } from '../support/markdown.js';

interface Row {
  group: string;
  where: string;
  kind: 'place' | 'way';
  spec: string;
}

const ROW = /^(place|way)\(\s*'([^']+)',\s*'([^']+)',/gm;

/** The table of docs/integrations.md, from the calls of `place` and `way` in the specs beside this file. */
export function integrationsTable(): string {
  const rows = filesIn('test/integrations')
    .filter((file) => file.endsWith('.spec.ts'))
    .sort()
    .flatMap(rowsOf)
    .sort((a, b) => a.group.localeCompare(b.group) || a.where.localeCompare(b.where));
  const lines = rows.map(({ group, where, kind, spec }, index) => {
    const label = rows[index - 1]?.group === group ? '' : `**${group}**`;
    return `| ${label} | ${where} | ${kind === 'place' ? 'above and below' : '✓'} | [${spec.split('/').pop()}](../${spec}) |`;
  });
  return ['| | Where | The lock works | Proof |', '| --- | --- | --- | --- |', ...lines].join('\n');
}

function rowsOf(spec: string): Row[] {
  return [...read(spec).matchAll(ROW)].map(([, kind, group = '', where = '']) => ({ group, where, kind: kind as Row['kind'], spec }));
}
