import { html, nothing, render, type TemplateResult } from 'lit-html';
import { VERSION, type Row } from '../dashboard.protocol.js';
import { refusal, type App } from './app.js';
import { makeDialog, type Target } from './dialog.js';
import { makeDrawer } from './drawer.js';
import { makeGraph } from './graph.js';
import { adviceList, alertList, answering, costList, eventList, leaderList, numbers, processList } from './sections.js';
import type { Server, Take } from './server.js';
import { apply, columns, emptyData, filters, freshAlerts, idOf, readAddress, writeAddress, type Column, type View } from './state.js';
import { keepStream } from './stream.js';
import { makeTable } from './table.js';
import { exactSpan, timeOf } from './words.js';

/** The number of keys that one request may have. */
const MOST = 100;

export function startPage(server: Server): void {
  const data = emptyData();
  const spoken = new Set<string>();
  const page = document.getElementById('page') as HTMLElement;
  let frame = 0;
  let isLive = false;
  let connection = 'connecting…';
  /** The time of the last message of the server, by its clock. */
  let heardAt = 0;
  let announcement: string[] = [];

  const app = {
    data,
    server,
    view: readAddress(location.search),
    version: 0,
    now: () => (isLive ? Date.now() + data.offset : heardAt),
    draw: () => void (frame ||= requestAnimationFrame(drawNow)),
    show(change: Partial<View>) {
      const before = app.view;
      const view = (app.view = { ...before, ...change });
      if (writeAddress(view, location.search) !== location.search)
        history.replaceState(null, '', location.pathname + writeAddress(view, location.search));
      drawer.follow(view.open);
      drawNow();
      if (change.open) document.getElementById('opened')?.focus();
      else if (before.open && change.open === null) table.focus(idOf(before.open));
      else if (change.notes) document.getElementById('events')?.focus();
    },
  } satisfies App;

  const narrow = matchMedia('(max-width: 640px)');
  const dialog = makeDialog(app, document.getElementById('dialog') as HTMLDialogElement, () => void drawer.ask());
  const table = makeTable(app, narrow, drawNow);
  const drawer = makeDrawer(app, dialog.release);
  const graph = makeGraph(app);

  const take: Take = (event, message) => {
    apply[event](data, message, Date.now());
    heardAt = Date.now() + data.offset;
    if (event === 'stats') {
      const alerts = data.stats.alerts.filter(({ kind }) => kind !== 'doctor');
      const fresh = freshAlerts(spoken, alerts);
      if (fresh.length > 0) announcement = fresh.map(({ text }) => text);
    }
    app.version++;
    table.sort();
    app.draw();
  };

  function drawNow(): void {
    cancelAnimationFrame(frame);
    frame = 0;
    render(template(), page);
    table.drawn();
  }

  let still: { version: number; view: View; parts: (TemplateResult | typeof nothing)[] } | undefined;

  function template(): TemplateResult {
    const { version, view } = app;
    const rows = table.template();
    // These do not change while the table is scrolled.
    if (still?.version !== version || still.view !== view) {
      still = {
        version,
        view,
        parts: [
          alertList(app),
          numbers(app),
          adviceList(app),
          eventList(app),
          costList(app, table.rows()),
          leaderList(app),
          processList(app),
        ],
      };
    }
    const [alerts, top, ...lists] = still.parts;
    const latency = Object.entries(data.stats.latency).map(
      ([store, time]) => `${store} ${time === null ? '⚠ does not answer' : `answers in ${exactSpan(time)}`}`,
    );
    const isOther = data.hello !== null && data.hello.version !== VERSION;
    return html`<header>
        <h1>Locks</h1>
        <label>Store ${choice(['', ...(data.hello?.stores ?? [])], view.store, (store) => app.show({ store }))}</label>
        <span>${answering(app)}</span>
        <span>${latency.join(' · ')}</span>
        <span id="connection">${isLive ? '● live' : `○ ${connection}`}</span>
      </header>
      <div role="alert" class="unseen">${announcement.map((text) => html`<p>${text}</p>`)}</div>
      ${isOther ? html`<p class="bad" role="status">⚠ The server has another version by now. <button @click=${() => location.reload()}>Reload</button></p>` : nothing}
      <main class=${isLive || heardAt === 0 ? nothing : 'stale'}>${alerts} ${top} ${tools()} ${rows} ${lists} ${graph()}</main>
      ${drawer.template()}`;
  }

  function tools(): TemplateResult {
    const { view } = app;
    const why = refusal(app);
    const rows = table.rows();
    const held = rows.filter(({ holder }) => holder);
    const isOfOneStore = held.every(({ store }) => store === held[0]?.store);
    const whyNotAll =
      why || (held.length > MOST ? `At most ${MOST} keys at once: filter first.` : isOfOneStore ? '' : 'Choose one store first.');
    const onSearch = ({ currentTarget }: Event): void => app.show({ query: (currentTarget as HTMLInputElement).value });
    return html`<div class="tools">
      <input id="search" type="search" aria-label="Search" placeholder="/ search key, label, host; ^prefix" .value=${view.query} @input=${onSearch} />
      <div role="group" aria-label="Filter">
        ${filters.map((filter) => html`<button aria-pressed=${filter === view.filter} @click=${() => app.show({ filter })}>${filter}</button> `)}
      </div>
      ${narrow.matches ? html`<label>Sort ${choice(columns, view.sort, (sort) => app.show({ sort: sort as Column }))}</label>` : nothing}
      <span>${rows.length} of ${data.rows.size} keys${isLive || heardAt === 0 ? '' : html` <b class="warn">as of ${timeOf(heardAt)}</b>`}</span>
      <button ?disabled=${whyNotAll !== '' || held.length === 0} @click=${() => dialog.release(held.flatMap(targetOf))}>Release all shown…</button>
      <button ?disabled=${why !== ''} @click=${() => dialog.hold()}>Hold a key…</button>
      ${whyNotAll && data.hello ? html`<small>${whyNotAll}</small>` : nothing}
    </div>`;
  }

  addEventListener('keydown', (event) => {
    const target = event.target as Element;
    if (document.querySelector('dialog[open]') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && !target.matches('input, select')) {
      event.preventDefault();
      document.getElementById('search')?.focus();
    } else if (event.key === 'Escape' && app.view.open) {
      app.show({ open: null });
    } else if (event.key === 'ArrowDown' && target.id === 'search') {
      event.preventDefault();
      table.focus();
    }
  });
  narrow.addEventListener('change', () => app.draw());
  setInterval(() => {
    // Ages grow, and a row may become old.
    if (document.visibilityState === 'hidden') return;
    app.version++;
    table.sort();
    app.draw();
  }, 1_000);
  drawer.follow(app.view.open);
  drawNow();
  keepStream(app.server, take, (live, why = '') => {
    [isLive, connection] = [live, `offline: ${why}`];
    app.draw();
  });
}

/** A choice of a few words; `''` is all. */
function choice(options: readonly string[], chosen: string, choose: (option: string) => void): TemplateResult {
  const onChange = ({ currentTarget }: Event): void => choose((currentTarget as HTMLSelectElement).value);
  return html`<select @change=${onChange}>${options.map((option) => html`<option value=${option} ?selected=${option === chosen}>${option || 'all'}</option>`)}</select>`;
}

/** The token of a silent holder may be an old one, and its process cannot be asked for it: its owner alone is compared. */
function targetOf({ store, key, holder }: Row): Target[] {
  return holder ? [{ store, key, owner: holder.owner, token: holder.isSilent ? null : holder.token, label: holder.label }] : [];
}
