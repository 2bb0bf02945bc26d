// Markdown: the medians, below them every round, and what the server was asked.
import { sum } from '../measure/statistics.mjs';

const cells = (values) => `| ${values.join(' | ')} |`;

const number = (value, digits = 0) =>
  Number.isFinite(value) ? value.toFixed(digits).replace(/^\d{4,}/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ',')) : '–';

export function tableOf({ title, network, roundTrip, columns, rows, rounds }) {
  return [
    `### ${title}`,
    '',
    `${network}, round trip of a PING ${roundTrip.toFixed(2)} ms; medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'}`,
    '',
    cells(['', 'version', ...columns.map((column) => column.title)]),
    `|---|---|${columns.map(() => '---:|').join('')}`,
    ...rows.map((row) => cells([row.contestant, row.version, ...columns.map((column) => cellOf(row, column))])),
    '',
    ...remarks(rows),
    '<details><summary>Every round</summary>',
    '',
    cells(['', 'round', ...columns.map((column) => column.title)]),
    `|---|---:|${columns.map(() => '---:|').join('')}`,
    ...rows.flatMap((row) =>
      row.rounds.map((round, i) => cells([row.contestant, i + 1, ...columns.map(({ key, digits }) => number(round[key], digits))])),
    ),
    '',
    '</details>',
    '',
    ...commandsOf(rows),
  ].join('\n');
}

/** What must not happen is summed up over the rounds: a median would hide it. */
const cellOf = (row, { key, digits, total }) =>
  total ? number(sum(row.rounds.map((round) => round[key] ?? 0)), 0) : number(row.median[key], digits);

function remarks(rows) {
  const lines = rows.flatMap(({ contestant, rounds }) => {
    const errors = rounds.flatMap((round) => [round.error, ...Object.keys(round.errors ?? {})]).filter(Boolean);
    const overlaps = sum(rounds.map((round) => round.overlaps ?? 0));
    const stray = sum(rounds.map((round) => round.stray ?? 0));
    const givenUp = rounds.filter(({ finish }) => finish === 'given up').map(({ elapsed }) => `${Math.round(elapsed / 1000)} s`);
    const capped = rounds.filter(({ finish }) => finish === 'cap').length;
    return [
      overlaps > 0 && `- **${contestant} let two in at once**: ${overlaps} sections began before an earlier one had ended.`,
      stray > 0 && `- ${contestant}: ${stray} errors that no caller saw.`,
      errors.length > 0 && `- ${contestant}: ${[...new Set(errors)].map((error) => `\`${error}\``).join(', ')}`,
      givenUp.length > 0 &&
        `- ${contestant} was ended after ${givenUp.join(', ')}: too far from done (\`--no-give-up\` waits for the cap).`,
      capped > 0 && `- ${contestant} was not done at the cap in ${capped} of ${rounds.length} rounds.`,
    ].filter(Boolean);
  });
  return lines.length > 0 ? [...lines, ''] : [];
}

function commandsOf(rows) {
  const lines = rows.flatMap(({ contestant, rounds }) => {
    const commands = Object.entries(rounds.at(-1).commands ?? {}).sort(([, a], [, b]) => b - a);
    return commands.length > 0 ? [`- ${contestant}: ${commands.map(([name, calls]) => `${name} ${number(calls)}`).join(', ')}`] : [];
  });
  if (lines.length === 0) return [];
  return [
    '<details><summary>INFO commandstats, last round</summary>',
    '',
    'With what scripts call inside the server.',
    '',
    ...lines,
    '',
    '</details>',
    '',
  ];
}

export function goalsOf(goals) {
  if (goals.length === 0) return '';
  return [
    '## Goals',
    '',
    'On loopback, medians of this run.',
    '',
    cells(['', 'goal', 'ours', 'peers', '']),
    '|---|---:|---:|---:|---|',
    ...goals.map(({ name, text, ours, range, met, digits, isSmaller }) => {
      const others = range ? `${number(range[0], digits)}–${number(range[1], digits)}` : '–';
      return cells([name, text, number(ours, digits), others, isSmaller ? 'smaller with --quick' : met ? 'met' : '**missed**']);
    }),
    '',
  ].join('\n');
}
