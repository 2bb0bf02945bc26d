import { html, nothing, svg, type TemplateResult } from 'lit-html';
import type { Second } from '../dashboard.protocol.js';
import type { App } from './app.js';
import { numbersOf, type View } from './state.js';
import { exactSpan, timeOf } from './words.js';

type Measure = readonly [name: string, field: Exclude<keyof Second, 'at'>];

const WIDTH = 600;
const MINUTE = 60_000;
const COUNTS: readonly Measure[] = [['waiting', 'waiting'], ['held', 'held']]; // prettier-ignore
const TIMES: readonly Measure[] = [['wait p95', 'waitP95'], ['wait p50', 'waitP50'], ['hold p95', 'holdP95']]; // prettier-ignore
const EVENTS: readonly Measure[] = [['lost', 'lost'], ['timeouts', 'timeouts']]; // prettier-ignore

const valuesOf = (seconds: readonly Second[], [, field]: Measure): number[] => seconds.flatMap((second) => second[field] ?? []);

function highestOf(seconds: readonly Second[], measures: readonly Measure[]): number {
  return Math.max(0, ...measures.flatMap((measure) => valuesOf(seconds, measure)));
}

/** Ten minutes, the newest second at the right edge. */
function picture(seconds: readonly Second[], measures: readonly Measure[], height: number): TemplateResult {
  const scale = (height - 2) / (highestOf(seconds, measures) || 1);
  const end = seconds.at(-1)?.at ?? 0;
  const point = (at: number, value: number): string =>
    `${Math.round(WIDTH - (WIDTH * (end - at)) / (10 * MINUTE))},${Math.round(height - 1 - value * scale)}`;
  const lines = measures.map(([, field], index) => {
    const points = seconds.flatMap((second) => (second[field] === null ? [] : point(second.at, second[field])));
    return svg`<polyline class=${`line${index}`} points=${points.join(' ')} />`;
  });
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none" aria-hidden="true">${lines}</svg>`;
}

/** Each number filters the table. */
export function numbers(app: App): TemplateResult {
  const { held, waiting, waitP95, lost, timeouts } = numbersOf(app.data);
  const button = (name: string, value: number | string, field: Measure[1], view: Partial<View>): TemplateResult => {
    const isBad = value !== 0 && EVENTS.some(([, event]) => event === field);
    return html`<button @click=${() => app.show({ sort: 'waiters', isReversed: false, ...view })}>
      <span>${name}</span> <b class=${isBad ? 'bad' : nothing}>${isBad ? '⚠ ' : ''}${value}</b>
      ${picture(app.data.seconds, [[name, field]], 24)}
    </button>`;
  };
  return html`<div class="numbers">
    ${button('Held', held, 'held', { filter: 'held' })}
    ${button('Waiting', waiting, 'waiting', { filter: 'contended' })}
    ${button('Wait p95, 1 min', exactSpan(waitP95), 'waitP95', { filter: 'contended', sort: 'wait' })}
    ${button('Lost, 5 min', lost, 'lost', { filter: 'lost' })}
    ${button('Timeouts, 5 min', timeouts, 'timeouts', { filter: 'timeout' })}
  </div>`;
}

/** Two charts, or the same numbers as a table. */
export function charts({ data: { seconds, processes } }: App, asTable: boolean, toggle: () => void): TemplateResult {
  const answering = processes.filter(({ isSilent }) => !isSilent).length;
  const chart = (title: string, measures: readonly Measure[], write: (value: number | null) => string): TemplateResult => html`<figure>
    <figcaption>${title}, at most ${write(highestOf(seconds, measures))}:
      ${measures.map(([name, field], index) => html`<span><svg class="sample" viewBox="0 0 24 8" aria-hidden="true"><polyline class=${`line${index}`} points="0,4 24,4" /></svg> ${name} <b>${write(seconds.at(-1)?.[field] ?? null)}</b> </span>`)}
    </figcaption>
    ${picture(seconds, measures, 80)}
  </figure>`;
  return html`<section aria-label="The last ten minutes">
    <h2>The last ten minutes</h2>
    <p>${seconds[0] ? `Since ${timeOf(seconds[0].at)}, from the processes that answer: ${answering}.` : ''} <button aria-pressed=${asTable} @click=${toggle}>As a table</button></p>
    ${asTable ? table(seconds) : html`<div class="charts">${chart('Waiting and held', COUNTS, (value) => String(value ?? '–'))}${chart('Time of waits and holds', TIMES, exactSpan)}</div>`}
  </section>`;
}

/** A line for each minute: the highest counts and times, and the sum of the events. */
function table(seconds: readonly Second[]): TemplateResult {
  const minutes = [...new Set(seconds.map(({ at }) => at - (at % MINUTE)))].reverse();
  const line = (start: number): TemplateResult => {
    const those = seconds.filter(({ at }) => at - (at % MINUTE) === start);
    const cells = [
      ...COUNTS.map((measure) => highestOf(those, [measure])),
      ...TIMES.map((measure) => (valuesOf(those, measure).length > 0 ? exactSpan(highestOf(those, [measure])) : '–')),
      ...EVENTS.map((measure) => valuesOf(those, measure).reduce((sum, value) => sum + value, 0)),
    ];
    return html`<tr><th scope="row">${timeOf(start).slice(0, 5)}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Numbers of each minute"><table class="plain">
    <thead><tr>${['minute', ...[...COUNTS, ...TIMES, ...EVENTS].map(([name]) => name)].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${minutes.map(line)}</tbody>
  </table></div>`;
}
