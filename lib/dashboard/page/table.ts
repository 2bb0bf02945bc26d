import { html, nothing, type TemplateResult } from 'lit-html';
import { silence, type App } from './app.js';
import { makeSearch } from './search.js';
import { byHand, idOf, inFrozenOrder, isOld, processOf, visibleRows, type Column, type Line, type View } from './state.js';
import { span, visible } from './words.js';

/** Rows in the DOM, and how many of them are above the first one in sight. */
const DRAWN = 60;
const ABOVE = 15;
/** Pixels, as in page.css. */
const HEAD = 34;
const ROW = 34;
const CARD = 96;

const HEADS: readonly [Column, string][] = [
  ['key', 'Key'],
  ['kind', 'Kind'],
  ['holder', 'Held by'],
  ['label', 'Doing'],
  ['age', 'For'],
  ['waiters', 'Waiters'],
];

export interface Table {
  /** Sorts the rows again if anything has changed. It is a task of its own: together with the drawing it would be a long one. */
  sort(): void;
  template(): TemplateResult;
  /** To be called after each drawing: another line of the table may show the key that has the focus. */
  drawn(): void;
  /** The rows of the filter, in the order of the screen. */
  rows(): readonly Line[];
  focus(id?: string): void;
}

export function makeTable(app: App, narrow: MediaQueryList, drawNow: () => void): Table {
  let rows: readonly Line[] = [];
  let sorted: { version: number; view: View; isFrozen: boolean } | undefined;
  let active = '';
  let top = 0;
  let hasPointer = false;
  const search = makeSearch(app);
  const scroller = (): HTMLElement | null => document.getElementById('rows');
  const hasFocus = (): boolean => scroller()?.contains(document.activeElement) ?? false;
  const first = (): number => Math.max(0, Math.min(Math.floor(top / height()) - ABOVE, rows.length - DRAWN));
  const height = (): number => (narrow.matches ? CARD : ROW);
  const head = (): number => (narrow.matches ? 0 : HEAD);

  const buttonOf = (id: string): HTMLElement | undefined =>
    scroller()?.querySelectorAll<HTMLElement>('tbody button')[rows.findIndex((row) => row.id === id) - first()];

  /** The order does not change under the pointer or the focus, unless the operator asks for another one. */
  const sort = (): void => {
    const { version, view, data } = app;
    const isSame = sorted !== undefined && orderOf(sorted.view) === orderOf(view);
    const isFrozen = isSame && (hasPointer || hasFocus());
    if (isSame && sorted?.version === version && sorted.isFrozen === isFrozen) return;
    rows = isFrozen ? inFrozenOrder(rows, data, view, app.now()) : visibleRows(data, view, app.now());
    if (!isSame) scroller()?.scrollTo({ top: (top = 0) });
    sorted = { version, view, isFrozen };
  };

  const focus = (id = active): void => {
    const index = Math.max(0, rows.findIndex((row) => row.id === id)); // prettier-ignore
    const box = scroller();
    const row = rows[index];
    if (!box || !row) return;
    active = row.id;
    const start = index * height();
    const end = start + height() - (box.clientHeight - head());
    box.scrollTop = top = Math.min(start, Math.max(end, box.scrollTop));
    drawNow();
    buttonOf(active)?.focus({ preventScroll: true });
  };

  const onKey = (event: KeyboardEvent): void => {
    const index = rows.findIndex((row) => row.id === active);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length };
    const step = steps[event.key as keyof typeof steps];
    const row = rows[Math.max(0, Math.min(rows.length - 1, index + step))];
    if (!row || (event.target as Element).closest('thead')) return;
    event.preventDefault();
    focus(row.id);
  };

  const heading = ([column, name]: readonly [Column, string]): TemplateResult => {
    const { sort: by, isReversed } = app.view;
    const direction = ['age', 'waiters'].includes(column) === isReversed ? 'ascending' : 'descending';
    const onClick = (): void => app.show({ sort: column, isReversed: by === column && !isReversed });
    return html`<th role="columnheader" scope="col" aria-sort=${by === column ? direction : nothing}>
      <button @click=${onClick}>
        ${name}<span aria-hidden="true">${by === column ? (direction === 'ascending' ? ' ▲' : ' ▼') : ''}</span>
      </button>
    </th>`;
  };

  const line = (row: Line, index: number, tabbable: string): TemplateResult => {
    const { holder, id } = row;
    const now = app.now();
    const more = row.holders > 1 ? ` and ${row.holders - 1} more` : '';
    const onClick = (): void => {
      active = id;
      app.show({ open: { store: row.store, key: row.key } });
    };
    return html`<tr role="row" aria-rowindex=${index + 2} class=${app.view.open && idOf(app.view.open) === id ? 'open' : nothing} @click=${onClick}>
      <td role="cell">
        <button class="link" tabindex=${id === tabbable ? 0 : -1} title=${row.key} @focus=${() => (active = id)}>${visible(row.key)}</button>
        ${(app.data.hello?.stores.length ?? 0) > 1 ? html`<small>${row.store}</small>` : nothing}
      </td>
      <td role="cell">${row.kind}</td>
      <td role="cell" title=${holder?.owner ?? nothing}>
        ${holder && silence(holder)}${holder ? (byHand(holder) ?? visible(processOf(holder)) + more) : '– free –'}
      </td>
      <td role="cell">${visible(holder?.label ?? '–')}${holder?.isSilent && holder.saidAt !== null ? html` <small>said ${span(now - holder.saidAt)} ago</small>` : nothing}</td>
      <td role="cell">
        ${holder?.since == null ? '–' : span(now - holder.since)}${isOld(row, now) ? html` <b class="warn">⚑ old</b>` : nothing}
      </td>
      <td role="cell">
        ${row.waiters > 0 ? html`<b>${row.waiters}</b><small> for ${span(row.waitingSince && now - row.waitingSince)}</small>` : '0'}
      </td>
    </tr>`;
  };

  return {
    sort,
    focus,
    rows: () => rows,
    template() {
      sort();
      const start = first();
      const drawn = rows.slice(start, start + DRAWN);
      // One row is a stop of the Tab key: the last one that had the focus, or the first one in sight.
      const inSight = drawn[Math.ceil(top / height()) - start] ?? drawn[0];
      const tabbable = drawn.some((row) => row.id === active) || !inSight ? active : inSight.id;
      const onScroll = ({ currentTarget }: Event): void => {
        top = (currentTarget as HTMLElement).scrollTop;
        app.draw();
      };
      const point = ({ type }: Event): void => {
        hasPointer = type === 'pointerenter';
        app.draw();
      };
      return html`<div id="rows" tabindex="-1" role="region" aria-label="Keys" @scroll=${onScroll} @keydown=${onKey} @pointerenter=${point} @pointerleave=${point} @focusout=${app.draw}>
        <div .style=${`height:${head() + rows.length * height()}px;padding-top:${start * height()}px`}>
          <table role="table" aria-label="Keys" aria-rowcount=${rows.length + 1}>
            <thead role="rowgroup"><tr role="row" aria-rowindex="1">${HEADS.map(heading)}</tr></thead>
            <tbody role="rowgroup">${drawn.map((row, index) => line(row, start + index, tabbable))}</tbody>
          </table>
        </div>
        ${rows.length > 0 ? nothing : html`<p class="none">${app.data.hello ? search.none() : 'Waiting for the server…'}</p>`}
      </div>${rows.length > 0 ? search.listed() : nothing}`;
    },
    drawn() {
      const box = scroller();
      const focused = document.activeElement;
      if (!box || (focused !== box && !focused?.closest('#rows tbody'))) return;
      (buttonOf(active) ?? box).focus({ preventScroll: true });
    },
  };
}

/** The choices of a view that make another list of rows. */
function orderOf({ store, query, filter, sort, isReversed }: View): string {
  return JSON.stringify([store, query, filter, sort, isReversed]);
}
