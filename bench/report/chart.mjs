// A bar for each contestant, as long as its median, with a dot for each round.

const WIDTH = 760;
/** Of a letter, at most. */
const LETTER = 7.4;
const RIGHT = 110;
const TOP = 58;
const STEP = 28;

const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

export function chartOf({ title, network, chart, rows, rounds }) {
  const shown = rows.filter(({ median }) => Number.isFinite(median[chart.key]));
  const values = shown.flatMap((row) => row.rounds.map((round) => round[chart.key])).filter(Number.isFinite);
  if (values.length === 0) return undefined;
  const left = 16 + LETTER * Math.max(...shown.map(({ contestant }) => contestant.length));
  const place = scale(values, left, chart.log);
  const height = TOP + STEP * shown.length + 14;
  const better = chart.more ? 'longer is better' : 'shorter is better';
  const lines = shown.map((row, i) => bar(row, chart, left, place, TOP + STEP * i));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    `<title>${escape(`${chart.title}. ${title}`)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="14" y="22" font-size="15" font-weight="600" fill="#1f2328">${escape(chart.title)}</text>`,
    `<text x="14" y="42" fill="#59636e">${escape(
      `${chart.unit}, ${better}${chart.log ? ', logarithmic' : ''}; ${network}; median of ${rounds}, a dot for each round`,
    )}</text>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n');
}

function bar({ contestant, median, rounds }, { key }, left, place, top) {
  const ours = contestant.startsWith('ours');
  const middle = top + STEP / 2;
  const end = place(median[key]);
  const dots = rounds
    .map((round) => round[key])
    .filter(Number.isFinite)
    .map((value) => `<circle cx="${place(value).toFixed(1)}" cy="${middle}" r="2.2" fill="#1f2328" fill-opacity="0.55"/>`);
  const furthest = Math.max(
    end,
    ...rounds
      .map((round) => round[key])
      .filter(Number.isFinite)
      .map(place),
  );
  return [
    `<text x="${left - 8}" y="${middle + 4}" text-anchor="end" fill="#1f2328"${ours ? ' font-weight="600"' : ''}>${escape(contestant)}</text>`,
    `<rect x="${left}" y="${top + 5}" width="${Math.max(1, end - left).toFixed(1)}" height="${STEP - 10}" fill="${ours ? '#1a7f37' : '#8c959f'}"/>`,
    ...dots,
    `<text x="${(furthest + 8).toFixed(1)}" y="${middle + 4}" fill="#1f2328">${format(median[key])}</text>`,
  ].join('\n');
}

function scale(values, left, log) {
  const room = WIDTH - left - RIGHT;
  const most = Math.max(...values);
  if (!log) return (value) => left + (most > 0 ? (value / most) * room : 0);
  // A decade of room before the least, so that it has a length.
  const least = Math.log10(Math.max(1e-6, Math.min(...values.filter((value) => value > 0)))) - 0.5;
  const span = Math.max(1, Math.log10(most) - least);
  return (value) => left + (value > 0 ? ((Math.log10(value) - least) / span) * room : 0);
}

function format(value) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, value >= 1000 ? ',' : '');
}
