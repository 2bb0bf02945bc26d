/** The lists above and below the table. */
import { html, type TemplateResult } from 'lit-html';
import type { Note } from '../dashboard.protocol.js';
import { keyLink, silence, type App } from './app.js';
import { isLeader, processOf } from './state.js';
import { exactSpan, span, timeOf } from './words.js';

const WORDS: Record<Note['event'], string> = {
  lost: '⚠ lost',
  timeout: '⚠ timed out',
  forced: 'taken away',
  failed: '⚠ failed',
  aborted: 'aborted',
  released: 'released',
};

export function noteLine({ at, event, label, process, reason, held }: Note, link?: TemplateResult): TemplateResult {
  const after = held === null ? '' : ` after ${exactSpan(held)}`;
  return html`<li><time>${timeOf(at)}</time> <b>${WORDS[event]}</b>${after} ${link} ${label} ${process}${reason && `: ${reason}`}</li>`;
}

export function alertList(app: App): TemplateResult {
  return html`<ul class="alerts">
    ${app.data.alerts.map(({ text, row }) => html`<li>⚠ ${text} ${row && keyLink(app, row, `Show ${row.key}`)}</li>`)}
  </ul>`;
}

export function eventList(app: App): TemplateResult {
  const { notes } = app.data;
  return html`<details open>
    <summary>Events: ${notes.length}</summary>
    <ul>${notes.slice(0, 100).map((note) => noteLine(note, keyLink(app, note)))}</ul>
  </details>`;
}

export function answering({ data: { processes } }: App): string {
  const silent = processes.filter(({ isSilent }) => isSilent).map(({ name }) => name);
  return `${processes.length - silent.length} of ${processes.length} processes answer${silent.length > 0 ? `, silent: ${silent.slice(0, 2).join(', ')}` : ''}`;
}

export function processList(app: App): TemplateResult {
  const sorted = [...app.data.processes].sort((a, b) => Number(b.isSilent) - Number(a.isSilent));
  return html`<details>
    <summary>Processes: ${answering(app)}</summary>
    <ul>${sorted.map((each) => html`<li><button class="link" @click=${() => app.show({ query: each.name, filter: 'all' })}>${each.name}</button> ${silence(each)} holds ${each.holds}, waits for ${each.waits}</li>`)}</ul>
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
