// Markdown: the medians of the rounds.
import { markdownTable } from '../../scripts/table.mjs';
import { isPeer, OURS } from '../contestants/lineup.mjs';
import { sum } from '../measure/statistics.mjs';

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
    `#### ${title}`,
    '',
    `${network}, round trip of a PING ${roundTrip.toFixed(2)} ms; ${roundsOf(rounds, peersOnce)}`,
    '',
    markdownTable(
      ['', 'version', ...columns.map((column) => column.title)],
      'll'.padEnd(columns.length + 2, 'r'),
      rows.map((row) => [row.contestant, row.version, ...columns.map((column) => cellOf(row, column))]),
    ),
    '',
    ...remarks(rows),
  ].join('\n');
}

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

/** What the number of a chart says to a user. */
const MEANINGS = {
  'w1-lone': 'What a lock adds to a call when nobody else wants it.',
  'w1-woken': 'How long a waiter in another process stays idle after a release.',
  'w2-distinct': 'How many calls of one process can be locked when each has a key of its own.',
  'w2-new': 'The same when each call has a key that was never used before, such as that of an order.',
  'w3-100': 'Time that 100 requests for one key take, over the time of their work alone: 1 is no overhead.',
  'w3-1000': 'The same with 1,000 requests.',
  'w4-2x25': 'How long the slowest 1 % wait when two instances want one key all the time: 1 is a perfect queue.',
  'w4-2x250': 'The same with 500 callers.',
  'w4-2x25-empty': 'How many very short calls can have one key in a second.',
  'w4-4x25': 'The slowest 1 % on four instances.',
  'w4-4x250': 'The same with 1,000 callers.',
  'w5-held': 'CPU time that renewing 10,000 locks takes for 10 s.',
  'w6-crowd': 'A crowd of 10,000 callers for one key: 1 is no overhead.',
  'w7-50-50': 'What readers gain by a read lock when half of the calls write.',
  'w7-95-5': 'The same when one call in twenty writes.',
  'w8-1': 'How many calls a limit of ten lets through, in one process.',
  'w8-2': 'The same in two processes.',
};

export const meaningOf = ({ id }) => MEANINGS[id] ?? '';

const onLoopback = ({ network, rows }) => network === 'loopback' && rows.some(({ contestant }) => isPeer(contestant));

/** One line for each chart: ours beside the best of the other libraries, those first where another one is ahead. */
export function summaryOf(tables) {
  const lines = tables.filter(onLoopback).flatMap(({ chart: { title, unit, key, more }, rows }) => {
    const all = rows.filter(({ median }) => Number.isFinite(median[key])).sort((a, b) => (a.median[key] - b.median[key]) * (more ? -1 : 1));
    const ours = all.find(({ contestant }) => contestant === OURS);
    const peers = all.filter(({ contestant }) => isPeer(contestant));
    if (!ours || peers.length === 0) return [];
    const [best, worst] = [peers[0], peers.at(-1)];
    const valueOf = ({ median }) => number(median[key], digitsFor(median[key]));
    const named = (row) => `${valueOf(row)} (${row.contestant})`;
    const isBehind = all.indexOf(best) < all.indexOf(ours);
    return [
      {
        isBehind,
        cells: [
          `${title}, ${unit}`,
          more ? 'more' : 'less',
          `${isBehind ? '' : '**'}${valueOf(ours)}${isBehind ? '' : '**'}`,
          named(best),
          best === worst ? '–' : named(worst),
        ],
      },
    ];
  });
  const shown = lines.sort((a, b) => Number(b.isBehind) - Number(a.isBehind)).map((line) => line.cells);
  return [
    'Medians on loopback. Where another library is ahead, the line comes first.',
    '',
    markdownTable(['', 'better', 'ours', 'best other library', 'last'], 'llrrr', shown),
    '',
  ].join('\n');
}

const digitsFor = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

export function goalsOf(goals) {
  if (goals.length === 0) return '';
  return [
    'Median of the rounds (least–most), on loopback unless the goal says otherwise. `peers`: the medians of the other libraries, from the least to the most.',
    '',
    markdownTable(
      ['', 'goal', 'ours', 'peers', ''],
      'lrrrl',
      goals.map(({ name, text, key, row, range, met, digits, isSmaller }) => {
        const others = range ? [...new Set(range.map((value) => number(value, digits)))].join('–') : '–';
        return [name, text, spread(row, key, digits), others, isSmaller ? 'smaller with --quick' : met ? 'met' : '**missed**'];
      }),
    ),
    '',
  ].join('\n');
}
