/** The lists above and below the table. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Note, PageState } from '../dashboard.protocol.js';
import { keyLink, type App } from './app.js';
import { noteFilters, type View } from './state.js';
import { exactSpan, span, timeOf, visible, visibleLong } from './words.js';

const WORDS: Record<Note['event'], string> = {
  lost: '⚠ lost',
  'ran out': '⚠ ran out',
  outage: '⚠ the store was away',
  timeout: '⚠ timed out',
  failed: '⚠ failed',
  forced: 'taken away',
  skipped: 'skipped',
  'gave back': 'asked back, and released',
  'held by hand': 'held by hand',
};
const FILTERS: Record<View['notes'], string> = { '': 'all', lost: 'lost', timeout: 'timed out', failed: 'failed', forced: 'taken away' };
const MOST_SHOWN = 100;

export function noteLine(app: App, note: Note, link?: TemplateResult): TemplateResult {
  const { at, firstAt, count, event, by, label, process, reason, lasted } = note;
  const [start, end] = [timeOf(firstAt, app.at), timeOf(at, app.at)];
  const times =
    count > 1 ? ` × ${count}, ${start}–${end}` : lasted === null ? '' : ` ${event === 'outage' ? 'for' : 'after'} ${exactSpan(lasted)}`;
  return html`<li><time>${end}</time> <b>${WORDS[event]}</b>${times} ${link} ${label && visible(label)} ${visible(process)}${by && ` by ${visible(by)}`}${reason && `: ${visible(reason)}`}</li>`;
}

/** The alarms of now. Without one there is a line of the same height, so that the first alarm does not move the table below a pointer. */
export function alarmList(app: App): TemplateResult {
  const { state } = app;
  const calm = state?.stores.every(({ at, isAway }) => at !== null && !isAway) ? 'No alarm.' : '…';
  const events = html`<button class="link" @click=${() => app.show({ notes: 'lost' })}>Show</button>`;
  const alarms = state?.alarms ?? [];
  return html`<ul class="alarms">
    ${alarms.length === 0 ? html`<li class="none">${calm}</li>` : nothing}
    ${alarms.map(({ kind, text, row, since }) => html`<li>⚠ ${visibleLong(text)}${since ? ` Since ${timeOf(since, app.at)}.` : ''} ${kind === 'lost' ? events : row && keyLink(app, row, `Show ${row.key}`)}</li>`)}
  </ul>`;
}

/** The advice of the doctor, below the table: it comes late, and may stay. */
export function adviceList({ advice }: PageState): TemplateResult | typeof nothing {
  if (advice.length === 0) return nothing;
  return html`<details class="advice">
    <summary>Advice of the doctor: ${advice.length}</summary>
    <ul>${advice.map((text) => html`<li>${visibleLong(text)}</li>`)}</ul>
  </details>`;
}

/** Each number filters the table, or the events. */
export function numbers(app: App, state: PageState): TemplateResult {
  const { held, waiting, longestWait, lost, timeouts, failed } = state.numbers;
  const button = (name: string, value: number | string, view: Partial<View>): TemplateResult => {
    const isBad = view.notes !== undefined && value !== 0;
    return html`<button @click=${() => app.show(view)}>
      <span>${name}</span> <b class=${isBad ? 'bad' : nothing}>${isBad ? '⚠ ' : ''}${value}</b>
    </button>`;
  };
  const sorted = { sort: 'waiters', isReversed: false } as const;
  return html`<div class="numbers">
    ${button('Held', held, { ...sorted, filter: 'held' })}
    ${button('Waiting', waiting, { ...sorted, filter: 'contended' })}
    ${button('Longest wait now', span(longestWait), { ...sorted, filter: 'contended', sort: 'wait' })}
    ${button('Lost, 5 min', lost, { notes: 'lost' })}
    ${button('Timeouts, 5 min', timeouts, { notes: 'timeout' })}
    ${button('Failed, 5 min', failed, { notes: 'failed' })}
  </div>`;
}

export function eventList(app: App, state: PageState): TemplateResult {
  const { notes: chosen } = app.view;
  const notes = state.notes.filter(({ event }) => chosen === '' || event === chosen || (chosen === 'lost' && event === 'ran out'));
  return html`<details open id="events" tabindex="-1">
    <summary>Events: ${notes.length}</summary>
    <div role="group" aria-label="Events">${noteFilters.map((each) => html`<button aria-pressed=${each === chosen} @click=${() => app.show({ notes: each })}>${FILTERS[each]}</button> `)}</div>
    <ul>${notes.slice(0, MOST_SHOWN).map((note) => noteLine(app, note, note.key ? keyLink(app, note) : html`${visible(note.store)}`))}</ul>
  </details>`;
}

export function answering({ state }: App): string {
  if (!state) return '';
  const { processes, stores } = state;
  const { known, silent } = processes;
  if (stores.length > 0 && stores.every(({ isAway }) => isAway)) return 'processes unknown';
  const names = silent.length > 0 ? `, silent: ${silent.slice(0, 2).map(visible).join(', ')}` : '';
  return `${known - silent.length} of ${known} processes answer${names}`;
}

/** How each store is. */
export function storeList({ state, at, view }: App): string {
  const all = (state?.stores ?? []).filter(({ name }) => view.store === '' || view.store === name);
  const how = all.map(({ name, at: of, isAway, latency, keys, isWhole }) => {
    if (isAway) return `${name} ⚠ does not answer${of === null ? '' : `, as of ${timeOf(of, at)}`}`;
    if (of === null) return `${name} is being listed`;
    const cut = isWhole ? '' : `, more than the ${keys - 1} keys that are listed: search`;
    return `${name} answers${latency === null ? '' : ` in ${exactSpan(latency)}`}${cut}`;
  });
  return how.join(' · ');
}
