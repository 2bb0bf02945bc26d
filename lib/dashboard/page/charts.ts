import { html, nothing, svg, type TemplateResult } from 'lit-html';
import type { Second } from '../dashboard.protocol.js';
import type { App } from './app.js';
import { numbersOf, type View } from './state.js';
import { exactSpan, timeOf } from './words.js';

type Measure = Exclude<keyof Second, 'at'>;

const WIDTH = 600;
const MINUTE = 60_000;
const HISTORY = 10 * MINUTE;
const NAMES: Record<Measure, string> = {
  waiting: 'waiting',
  held: 'held',
  waitP95: 'wait p95',
  waitP50: 'wait p50',
  holdP95: 'hold p95',
  lost: 'lost',
  timeouts: 'timeouts',
};
const CHARTS: readonly { title: string; measures: readonly Measure[]; isTime: boolean }[] = [
  { title: 'Waiting and held', measures: ['waiting', 'held'], isTime: false },
  { title: 'Time of waits and holds', measures: ['waitP95', 'waitP50', 'holdP95'], isTime: true },
];

/** The points of ten minutes, the newest one at the right edge. A measure that is missing for a second keeps its height. */
function pointsOf(seconds: readonly Second[], measure: Measure, highest: number, height: number): string {
  const end = seconds.at(-1)?.at ?? 0;
  return seconds
    .filter((second) => second[measure] !== null)
    .map(
      (second) =>
        `${Math.round(WIDTH - ((end - second.at) / HISTORY) * WIDTH)},${Math.round(height - 1 - ((second[measure] ?? 0) / highest) * (height - 2))}`,
    )
    .join(' ');
}

function highestOf(seconds: readonly Second[], measures: readonly Measure[]): number {
  return seconds.reduce((highest, second) => Math.max(highest, ...measures.map((measure) => second[measure] ?? 0)), 1);
}

function picture(seconds: readonly Second[], measures: readonly Measure[], height: number): TemplateResult {
  const highest = highestOf(seconds, measures);
  const lines = measures.map(
    (measure, index) => svg`<polyline class=${`line${index}`} points=${pointsOf(seconds, measure, highest, height)} />`,
  );
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none" aria-hidden="true">${lines}</svg>`;
}

/** Each number filters the table. */
export function numbers(app: App): TemplateResult {
  const { held, waiting, waitP95, lost, timeouts } = numbersOf(app.data);
  const buttons: readonly [string, string | number, Measure, Partial<View>, isBad?: boolean][] = [
    ['Held', held, 'held', { filter: 'held' }],
    ['Waiting', waiting, 'waiting', { filter: 'contended' }],
    ['Wait p95, 1 min', exactSpan(waitP95), 'waitP95', { filter: 'contended', sort: 'wait' }],
    ['Lost, 5 min', lost, 'lost', { filter: 'lost' }, lost > 0],
    ['Timeouts, 5 min', timeouts, 'timeouts', { filter: 'timeout' }, timeouts > 0],
  ];
  return html`<div class="numbers">
    ${buttons.map(
      ([name, value, measure, view, isBad]) =>
        html`<button @click=${() => app.show({ sort: 'waiters', isReversed: false, ...view })}>
          <span>${name}</span>
          <b class=${isBad ? 'bad' : nothing}>${isBad ? '⚠ ' : ''}${value}</b>${picture(app.data.seconds, [measure], 24)}
        </button>`,
    )}
  </div>`;
}

/** Two charts, or the same numbers as a table. */
export function charts({ data: { seconds, processes } }: App, asTable: boolean, toggle: () => void): TemplateResult {
  const answering = processes.filter(({ isSilent }) => !isSilent).length;
  const since = seconds[0] ? `Since ${timeOf(seconds[0].at)}, from the processes that answer: ${answering}.` : '';
  return html`<section aria-label="The last ten minutes">
    <h2>The last ten minutes</h2>
    <p>${since} <button aria-pressed=${asTable} @click=${toggle}>As a table</button></p>
    ${asTable ? tableOf(seconds) : html`<div class="charts">${CHARTS.map((chart) => chartOf(seconds, chart))}</div>`}
  </section>`;
}

function chartOf(seconds: readonly Second[], { title, measures, isTime }: (typeof CHARTS)[number]): TemplateResult {
  const write = (value: number | null): string => (isTime ? exactSpan(value) : String(value ?? '–'));
  const legend = measures.map(
    (measure, index) =>
      html`<span
        ><svg class="sample" viewBox="0 0 24 8" aria-hidden="true"><polyline class=${`line${index}`} points="0,4 24,4" /></svg>
        ${NAMES[measure]} <b>${write(seconds.at(-1)?.[measure] ?? null)}</b></span
      >`,
  );
  return html`<figure>
    <figcaption>${title}, at most ${write(highestOf(seconds, measures))}: ${legend}</figcaption>
    ${picture(seconds, measures, 80)}
  </figure>`;
}

/** One line for each minute: the last value of what is a state, the highest time, the sum of what is an event. */
function tableOf(seconds: readonly Second[]): TemplateResult {
  const starts = [...new Set(seconds.map(({ at }) => Math.floor(at / MINUTE)))].sort((a, b) => b - a);
  const minutes = starts.map((start) => seconds.filter(({ at }) => Math.floor(at / MINUTE) === start));
  const highest = (minute: Second[], measure: Measure): number | null => {
    const values = minute.flatMap((second) => second[measure] ?? []);
    return values.length > 0 ? Math.max(...values) : null;
  };
  const sum = (minute: Second[], measure: Measure): number => minute.reduce((total, second) => total + (second[measure] ?? 0), 0);
  const names = Object.keys(NAMES) as Measure[];
  const cell = (minute: Second[], measure: Measure): string | number => {
    if (/P[59]/.test(measure)) return exactSpan(highest(minute, measure));
    return measure === 'lost' || measure === 'timeouts' ? sum(minute, measure) : (highest(minute, measure) ?? 0);
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Numbers of each minute">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">minute</th>
          ${names.map((measure) => html`<th scope="col">${NAMES[measure]}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${minutes.map(
          (minute) =>
            html`<tr>
              <th scope="row">${timeOf(minute[0]?.at ?? 0).slice(0, 5)}</th>
              ${names.map((measure) => html`<td>${cell(minute, measure)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
