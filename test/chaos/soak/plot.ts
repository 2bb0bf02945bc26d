import { MEASURES, type Sample } from './sample.js';

const WIDTH = 760;
const HEIGHT = 110;
const LEFT = 150;

/** A curve for each measure of each phase, from 0 to its largest value. */
export function plot(phases: readonly { title: string; samples: readonly Sample[] }[]): string {
  const panels = phases.flatMap(({ title, samples }) => MEASURES.map((measure) => ({ title, measure, samples })));
  const drawn = panels.map(({ title, measure, samples }, i) => {
    const top = i * HEIGHT + 10;
    const values = samples.map((sample) => sample[measure]);
    const most = Math.max(...values, 1);
    const end = Math.max(samples.at(-1)?.at ?? 1, 1);
    const points = samples.map(({ at }, j) => {
      const x = LEFT + (at / end) * (WIDTH - LEFT - 10);
      return `${x.toFixed(1)},${(top + (HEIGHT - 30) * (1 - values[j]! / most)).toFixed(1)}`;
    });
    const label = `<text x="4" y="${top + 14}">${title}</text><text x="4" y="${top + 30}">${measure}: ${most.toFixed(1)}</text>`;
    const floor = top + HEIGHT - 30;
    const axis = `<line x1="${LEFT}" x2="${WIDTH - 10}" y1="${floor}" y2="${floor}" stroke="#999"/>`;
    return `${label}${axis}<polyline points="${points.join(' ')}" fill="none" stroke="#06c"/><text x="${WIDTH - 70}" y="${floor + 14}">${end.toFixed(0)} s</text>`;
  });
  const height = panels.length * HEIGHT + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">\n${drawn.join('\n')}\n</svg>\n`;
}
