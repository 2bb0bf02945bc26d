import { html, nothing, type TemplateResult } from 'lit-html';
import type { Row, PageState } from '../dashboard.protocol.js';
import { isStale, silence, type App } from './app.js';
import { idOf, isOld, keptWords, processOf, visibleRows, type Column, type View } from './state.js';
import { exactSpan, span, timeOf, visible } from './words.js';

const HEADS: readonly [Column, string][] = [
  ['key', 'Key'],
  ['kind', 'Kind'],
  ['holder', 'Held by'],
  ['label', 'Doing'],
  ['age', 'For'],
  ['ends', 'Ends in'],
  ['waiters', 'Waiters'],
];

export interface Table {
  template(): TemplateResult;
  /** The rows on the screen. */
  rows(): readonly Row[];
  /** @param id of the row; default: the one that had the focus last, or the first. */
  focus(id?: string): void;
}

export function makeTable(app: App): Table {
  let rows: readonly Row[] = [];
  let shown: { state: PageState; view: View } | undefined;
  let active = '';
  const body = (): HTMLElement | null => document.querySelector('#rows tbody');

  /** Under the focus the rows stay as they are, unless the operator asks for others. */
  const choose = (): void => {
    const { state, view } = app;
    if (!state) return;
    const isSame = shown && JSON.stringify({ ...shown.view, open: null }) === JSON.stringify({ ...view, open: null });
    if (isSame && (shown?.state === state || body()?.contains(document.activeElement))) return;
    rows = visibleRows(state, view);
    shown = { state, view };
  };

  const focus = (id = active): void => {
    const index = Math.max(0, rows.findIndex((row) => idOf(row) === id)); // prettier-ignore
    body()?.querySelectorAll<HTMLElement>('tr > td:first-child button')[index]?.focus();
  };

  const onKey = (event: KeyboardEvent): void => {
    const index = rows.findIndex((row) => idOf(row) === active);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length };
    const step = steps[event.key as keyof typeof steps];
    const row = rows[Math.max(0, Math.min(rows.length - 1, index + step))];
    if (!row || (event.target as Element).closest('thead')) return;
    event.preventDefault();
    focus(idOf(row));
  };

  const heading = ([column, name]: readonly [Column, string]): TemplateResult => {
    const { sort: by, isReversed } = app.view;
    const direction = ['age', 'waiters'].includes(column) === isReversed ? 'ascending' : 'descending';
    const onClick = (): void => app.show({ sort: column, isReversed: by === column && !isReversed });
    return html`<th role="columnheader" scope="col" aria-sort=${by === column ? direction : nothing}>
      <button @click=${onClick}>${name}<span aria-hidden="true">${by === column ? (direction === 'ascending' ? ' ▲' : ' ▼') : ''}</span></button>
    </th>`;
  };

  const endOf = ({ holder, store }: Row): string => {
    if (holder?.endsAt == null) return '–';
    if (holder.endsAt <= app.now() && isStale(app, store)) return `ended ${timeOf(holder.endsAt, app.at)}, not confirmed`;
    const of = shown?.state.stores.find(({ name }) => name === store)?.at ?? app.at;
    return exactSpan(Math.max(0, holder.endsAt - of));
  };

  const line = (row: Row, tabbable: string): TemplateResult => {
    const { holder, store, key, kind, permits, holders, waiters, waitingSince } = row;
    const { at } = app;
    const id = idOf(row);
    const more = holders > 1 ? ` and ${holders - 1} more` : '';
    const kept = holder && keptWords(holder, at);
    const open = (): void => app.show({ open: { store, key } });
    const classes = [app.view.open && idOf(app.view.open) === id ? 'open' : '', isStale(app, store) ? 'stale' : ''].join(' ').trim();
    return html`<tr role="row" class=${classes || nothing} @click=${open}>
      <td role="cell">
        <button class="link" tabindex=${id === tabbable ? 0 : -1} title=${key} @focus=${() => (active = id)}>${visible(key)}</button>
        ${(app.state?.stores.length ?? 0) > 1 ? html`<small>${store}</small>` : nothing}
      </td>
      <td role="cell">${kind}${permits === null ? '' : ` of ${permits}`}</td>
      <td role="cell" title=${holder?.owner ?? nothing}>
        ${holder && silence(holder)}${kept ? html`${kept} <small>${visible(processOf(holder))}</small>` : holder ? visible(processOf(holder)) + more : 'nobody'}
      </td>
      <td role="cell">${visible(holder?.label ?? '–')}${holder?.isSilent && holder.saidAt !== null ? html` <small>said ${span(at - holder.saidAt)} ago</small>` : nothing}</td>
      <td role="cell">${holder?.since == null || kept ? '–' : span(at - holder.since)}${isOld(row, at) ? html` <b class="warn">⚑ old</b>` : nothing}</td>
      <td role="cell">${endOf(row)}</td>
      <td role="cell">${waiters > 0 ? html`<b>${waiters}</b><small> for ${span(waitingSince && at - waitingSince)}</small>` : '0'}</td>
    </tr>`;
  };

  return {
    focus,
    rows: () => rows,
    template() {
      choose();
      // One row is a stop of the Tab key: the last one that had the focus, or the first.
      const tabbable = rows.some((row) => idOf(row) === active) ? active : rows[0] ? idOf(rows[0]) : '';
      const none = app.view.query || app.view.filter !== 'all' ? 'No key is like this.' : 'Nothing is held.';
      return html`<div id="rows" role="region" aria-label="Keys" tabindex="-1" @keydown=${onKey} @focusout=${() => setTimeout(app.draw)}>
        <table role="table" aria-label="Keys">
          <thead role="rowgroup"><tr role="row">${HEADS.map(heading)}</tr></thead>
          <tbody role="rowgroup">${rows.map((row) => line(row, tabbable))}</tbody>
        </table>
        ${rows.length > 0 ? nothing : html`<p class="none">${app.state ? none : 'Waiting for the server…'}</p>`}
      </div>`;
    },
  };
}
