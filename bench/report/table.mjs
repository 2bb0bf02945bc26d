// Markdown: the medians, below them every round, and what the server was asked.
import { isPeer, OURS } from '../contestants/lineup.mjs';
import { sum } from '../measure/statistics.mjs';

const cells = (values) => `| ${values.join(' | ')} |`;

const number = (value, digits = 0) =>
  Number.isFinite(value) ? value.toFixed(digits).replace(/^\d{4,}/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ',')) : '–';

/** The median, and between which numbers the rounds were. */
function spread({ median, rounds }, key, digits) {
  const all = rounds.map((round) => round[key]).filter(Number.isFinite);
  const [least, most] = [Math.min(...all), Math.max(...all)].map((value) => number(value, digits));
  return least === most || all.length === 0 ? number(median[key], digits) : `${number(median[key], digits)} (${least}–${most})`;
}

export function tableOf({ title, network, roundTrip, columns, rows, rounds, peersOnce }) {
  return [
    `### ${title}`,
    '',
    `${network}, round trip of a PING ${roundTrip.toFixed(2)} ms; ${roundsOf(rounds, peersOnce)}`,
    '',
    cells(['', 'version', ...columns.map((column) => column.title)]),
    `|---|---|${columns.map(() => '---:|').join('')}`,
    ...rows.map((row) => cells([row.contestant, row.version, ...columns.map((column) => cellOf(row, column))])),
    '',
    ...remarks(rows),
  ].join('\n');
}

export const detailsOf = ({ columns, rows }) =>
  [
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

const roundsOf = (rounds, peersOnce) =>
  rounds === 1 ? '1 round' : `median of ${rounds} rounds (least–most)${peersOnce ? '; the other libraries have one' : ''}`;

/** Adds up over the rounds what must not happen, because a median would hide it. */
const cellOf = (row, { key, digits, total }) =>
  total ? number(sum(row.rounds.map((round) => round[key] ?? 0)), 0) : spread(row, key, digits);

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

/** One line for each chart, on loopback: ours beside the other libraries. */
export function summaryOf(tables) {
  const shown = tables.filter(({ network, rows }) => network === 'loopback' && rows.some(({ contestant }) => isPeer(contestant)));
  const peers = [...new Set(shown.flatMap(({ rows }) => rows.map(({ contestant }) => contestant)))].filter(isPeer);
  const valueOf = (rows, name, key) => {
    const row = rows.find(({ contestant }) => contestant === name);
    return row === undefined ? '–' : spread(row, key, digitsFor(row.median[key]));
  };
  return [
    'Median of the rounds (least–most), on loopback.',
    '',
    cells(['', 'better', ...[OURS, ...peers]]),
    `|---|---|${[OURS, ...peers].map(() => '---:|').join('')}`,
    ...shown.map(({ chart, rows }) =>
      cells([
        `${chart.title}, ${chart.unit}`,
        chart.more ? 'more' : 'less',
        ...[OURS, ...peers].map((name) => valueOf(rows, name, chart.key)),
      ]),
    ),
    '',
  ].join('\n');
}

const digitsFor = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

export function goalsOf(goals) {
  if (goals.length === 0) return '';
  return [
    'Median of the rounds (least–most), on loopback unless the goal says otherwise. `peers`: the medians of the other libraries, from the least to the most.',
    '',
    cells(['', 'goal', 'ours', 'peers', '']),
    '|---|---:|---:|---:|---|',
    ...goals.map(({ name, text, key, row, range, met, digits, isSmaller }) => {
      const others = range ? [...new Set(range.map((value) => number(value, digits)))].join('–') : '–';
      return cells([name, text, spread(row, key, digits), others, isSmaller ? 'smaller with --quick' : met ? 'met' : '**missed**']);
    }),
    '',
  ].join('\n');
}
