/** The lists above and below the table. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Note } from '../dashboard.protocol.js';
import { keyLink, silence, type App } from './app.js';
import { isLeader, prefixesIn, processOf, type Line, type View } from './state.js';
import { exactSpan, span, timeOf, visible } from './words.js';

const WORDS: Record<Note['event'], string> = {
  lost: '⚠ lost',
  timeout: '⚠ timed out',
  forced: 'taken away',
  'gave back': 'asked back, and released',
  'held by hand': 'held by hand',
  failed: '⚠ failed',
  aborted: 'aborted',
  released: 'released',
};

export function noteLine({ at, firstAt, count, event, by, label, process, reason, held }: Note, link?: TemplateResult): TemplateResult {
  const after = held === null ? '' : ` after ${exactSpan(held)}`;
  const [start, end] = [timeOf(firstAt), timeOf(at)];
  const times = count > 1 ? ` × ${count}, ${start}–${end}` : after;
  return html`<li><time>${end}</time> <b>${WORDS[event]}</b>${times} ${link} ${label && visible(label)} ${visible(process)}${by && ` by ${visible(by)}`}${reason && `: ${visible(reason)}`}</li>`;
}

/** The alarms of now. Without one there is a line of the same height, so that the first alarm does not move the table below a pointer. */
export function alertList(app: App): TemplateResult {
  const { stats } = app.data;
  const alerts = stats.alerts.filter(({ kind }) => kind !== 'doctor');
  const times = Object.values(stats.latency);
  const isCalm = times.length > 0 && times.every((time) => time !== null);
  const calm = html`<li class="none">${isCalm ? 'No alarm.' : '…'}</li>`;
  const events = html`<button class="link" @click=${() => app.show({ notes: 'lost' })}>Show</button>`;
  return html`<ul class="alerts">
    ${alerts.length === 0 ? calm : alerts.map(({ kind, text, row }) => html`<li>⚠ ${visibleLong(text)} ${kind === 'lost' ? events : row && keyLink(app, row, `Show ${row.key}`)}</li>`)}
  </ul>`;
}

/** The advice of the doctor, below the table: it comes late, and may stay. */
export function adviceList({ data }: App): TemplateResult | typeof nothing {
  const advice = data.stats.alerts.filter(({ kind }) => kind === 'doctor');
  if (advice.length === 0) return nothing;
  return html`<details class="advice">
    <summary>Advice of the doctor: ${advice.length}</summary>
    <ul>${advice.map(({ text }) => html`<li>${visibleLong(text)}</li>`)}</ul>
  </details>`;
}

/** An alert has several names, each of which may be long. */
function visibleLong(text: string): string {
  return text.split(' ').map(visible).join(' ');
}

/** Each number filters the table, or the events. */
export function numbers(app: App): TemplateResult {
  const { held, waiting, waitP95, lost, timeouts } = app.data.stats.numbers;
  const button = (name: string, value: number | string | null, view: Partial<View>): TemplateResult => {
    const isBad = view.notes !== undefined && value !== 0;
    return html`<button @click=${() => app.show(view)}>
      <span>${name}</span> <b class=${isBad ? 'bad' : nothing}>${isBad ? '⚠ ' : ''}${value ?? '…'}</b>
    </button>`;
  };
  const sorted = { sort: 'waiters', isReversed: false } as const;
  return html`<div class="numbers">
    ${button('Held', held, { ...sorted, filter: 'held' })}
    ${button('Waiting', waiting, { ...sorted, filter: 'contended' })}
    ${button('Wait p95, 1 min', exactSpan(waitP95), { ...sorted, filter: 'contended', sort: 'wait' })}
    ${button('Lost, 5 min', lost, { notes: 'lost' })}
    ${button('Timeouts, 5 min', timeouts, { notes: 'timeout' })}
  </div>`;
}

export function eventList(app: App): TemplateResult {
  const { notes: chosen } = app.view;
  const notes = app.data.notes.filter(({ event }) => chosen === '' || event === chosen);
  const choice = (event: View['notes'], name: string): TemplateResult =>
    html`<button aria-pressed=${event === chosen} @click=${() => app.show({ notes: event })}>${name}</button> `;
  return html`<details open id="events" tabindex="-1">
    <summary>Events: ${notes.length}</summary>
    <div role="group" aria-label="Events">${choice('', 'all')}${choice('lost', 'lost')}${choice('timeout', 'timed out')}${choice('forced', 'taken away')}</div>
    <ul>${notes.slice(0, 100).map((note) => noteLine(note, keyLink(app, note)))}</ul>
  </details>`;
}

export function answering({ data }: App): string {
  const { processes } = data.stats;
  const silent = processes.filter(({ isSilent }) => isSilent).map(({ name }) => name);
  return `${processes.length - silent.length} of ${processes.length} processes answer${silent.length > 0 ? `, silent: ${silent.slice(0, 2).join(', ')}` : ''}`;
}

export function processList(app: App): TemplateResult {
  const sorted = [...app.data.stats.processes].sort((a, b) => Number(b.isSilent) - Number(a.isSilent));
  return html`<details>
    <summary>Processes: ${answering(app)}</summary>
    <ul>${sorted.map((each) => html`<li><button class="link" @click=${() => app.show({ query: each.name, filter: 'all' })}>${visible(each.name)}</button> ${silence(each)} holds ${each.holds}, waits for ${each.waits}</li>`)}</ul>
  </details>`;
}

export function leaderList(app: App): TemplateResult {
  const leaders = [...app.data.rows.values()].filter(isLeader);
  const reign = ({ holder }: (typeof leaders)[number]): string => holder ? `${processOf(holder)}, for ${span(holder.since && app.now() - holder.since)}` : 'nobody leads'; // prettier-ignore
  return html`<details>
    <summary>Leaders: ${leaders.length}</summary>
    <ul>${leaders.map((row) => html`<li>${keyLink(app, row)}: ${reign(row)}, standbys: ${row.waiters}</li>`)}</ul>
  </details>`;
}

/** The labels that cost the callers most time, and the tenants of the keys. */
export function costList(app: App, rows: readonly Line[]): TemplateResult {
  const prefixes = prefixesIn(rows, app.view.query);
  return html`<details>
      <summary>Waiting time of labels, 5 min</summary>
      <ul>${app.data.stats.costly.map(({ label, waited }) => html`<li><button class="link" @click=${() => app.show({ query: label })}>${visible(label)}</button>: ${exactSpan(waited)}</li>`)}</ul>
    </details>
    <details>
      <summary>Prefixes: ${prefixes.length}</summary>
      <ul>${prefixes.map(([prefix, keys, waiters]) => html`<li><button class="link" @click=${() => app.show({ query: `^${prefix}` })}>${visible(prefix)}</button> ${keys} keys, ${waiters} waiters</li>`)}</ul>
    </details>`;
}
