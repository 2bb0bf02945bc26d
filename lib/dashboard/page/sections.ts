/** What is below the table: lists of what the rows say in another way. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Note } from '../dashboard.protocol.js';
import { keyLink, type App } from './app.js';
import { isLeader, processOf } from './state.js';
import { span, timeOf } from './words.js';

const SHOWN = 100;
const WORDS: Record<Note['event'], string> = {
  lost: '⚠ lost',
  timeout: '⚠ timed out',
  forced: 'taken away',
  failed: '⚠ failed',
  aborted: 'aborted',
};

export function noteLine({ at, event, label, process, reason }: Note, link?: TemplateResult): TemplateResult {
  return html`<li>
    <time>${timeOf(at)}</time> <b>${WORDS[event]}</b> ${link ?? ''} ${label ?? ''} ${process}${reason ? `: ${reason}` : ''}
  </li>`;
}

export function alertList(app: App): TemplateResult {
  return html`<ul class="alerts">
    ${app.data.alerts.map(({ text, row }) => html`<li>⚠ ${text} ${row ? html`<button class="link" @click=${() => app.show({ open: row })}>Show ${row.key}</button>` : nothing}</li>`)}
  </ul>`;
}

export function eventList(app: App): TemplateResult {
  const { notes } = app.data;
  return html`<details open>
    <summary>Events: ${notes.length}</summary>
    <ul>
      ${notes.slice(0, SHOWN).map((note) => noteLine(note, keyLink(app, note)))}
    </ul>
  </details>`;
}

export function processList(app: App): TemplateResult {
  const { processes } = app.data;
  return html`<details>
    <summary>Processes: ${answering(app)}</summary>
    <ul>
      ${[...processes]
        .sort((a, b) => Number(b.isSilent) - Number(a.isSilent))
        .map(
          ({ name, isSilent, holds, waits }) =>
            html`<li>
              <button class="link" @click=${() => app.show({ query: name, filter: 'all' })}>${name}</button>
              ${isSilent ? html`<b class="bad">⚠ silent</b>` : 'answers'}, holds ${holds}, waits for ${waits}
            </li>`,
        )}
    </ul>
  </details>`;
}

export function answering({ data: { processes } }: App): string {
  const silent = processes.filter(({ isSilent }) => isSilent);
  const names = silent.length > 0 && silent.length <= 2 ? `, silent: ${silent.map(({ name }) => name).join(', ')}` : '';
  return `${processes.length - silent.length} of ${processes.length} processes answer${names}`;
}

export function leaderList(app: App): TemplateResult {
  const leaders = [...app.data.rows.values()].filter(isLeader);
  return html`<details>
    <summary>Leaders: ${leaders.length}</summary>
    <ul>
      ${leaders.map(
        (row) =>
          html`<li>
            ${keyLink(app, row)}:
            ${row.holder ? `${processOf(row.holder)}, for ${span(row.holder.since && app.now() - row.holder.since)}` : 'nobody leads'},
            standbys: ${row.waiters}
          </li>`,
      )}
    </ul>
  </details>`;
}
