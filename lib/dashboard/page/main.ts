import { html, nothing, render, type TemplateResult } from 'lit-html';
import type { Row } from '../dashboard.protocol.js';
import { refusal, type App } from './app.js';
import { charts, numbers } from './charts.js';
import { demoServer } from './demo.js';
import { makeDialog, type Target } from './dialog.js';
import { makeDrawer } from './drawer.js';
import { makeGraph } from './graph.js';
import { alertList, answering, eventList, leaderList, processList } from './sections.js';
import { serverAt, type Take } from './server.js';
import { apply, emptyData, filters, freshAlerts, idOf, readAddress, writeAddress, type Filter, type View } from './state.js';
import { keepStream } from './stream.js';
import { makeTable } from './table.js';
import { exactSpan } from './words.js';

/** The number of keys that one request may have. */
const MOST = 100;

const data = emptyData();
const spoken = new Set<string>();
const page = document.getElementById('page') as HTMLElement;
let view: View = readAddress(location.search);
let version = 0;
let frame = 0;
let asTable = false;
let connection = 'connecting…';
let announcement: string[] = [];

const app: App = {
  data,
  server: new URLSearchParams(location.search).has('demo') ? demoServer() : serverAt(location.pathname.replace(/\/+$/, '')),
  get view() {
    return view;
  },
  get version() {
    return version;
  },
  now: () => Date.now() + data.offset,
  draw: () => void (frame ||= requestAnimationFrame(drawNow)),
  show(change) {
    const before = view;
    view = { ...view, ...change };
    if (writeAddress(view, location.search) !== location.search)
      history.replaceState(null, '', location.pathname + writeAddress(view, location.search));
    drawer.follow(view.open);
    drawNow();
    if (change.open) document.getElementById('opened')?.focus();
    else if (before.open && change.open === null) table.focus(idOf(before.open));
  },
};

const narrow = matchMedia('(max-width: 640px)');
const dialog = makeDialog(app, document.getElementById('dialog') as HTMLDialogElement, () => void drawer.ask());
const table = makeTable(app, narrow, drawNow);
const drawer = makeDrawer(app, dialog.release);
const graph = makeGraph(app);

const take: Take = (event, message) => {
  apply[event](data, message, Date.now());
  if (event === 'stats') {
    const fresh = freshAlerts(spoken, data.alerts);
    if (fresh.length > 0) announcement = fresh.map(({ text }) => text);
  }
  version++;
  table.sort();
  app.draw();
};

keepStream(app.server, take, (isLive, why = '') => {
  connection = isLive ? '● live' : `○ offline: ${why}`;
  app.draw();
});

function drawNow(): void {
  cancelAnimationFrame(frame);
  frame = 0;
  render(template(), page);
  table.drawn();
}

let still: { version: number; parts: TemplateResult[] } | undefined;

function template(): TemplateResult {
  const rows = table.template();
  // These do not change while the table is scrolled.
  if (still?.version !== version) still = { version, parts: [numbers(app), charts(app, asTable, toggleTable), leaderList(app)] };
  const [top, bottom, leaders] = still.parts;
  const stores = data.hello?.stores ?? [];
  const latency = Object.entries(data.latency).map(
    ([store, time]) => `${store} ${time === null ? '⚠ does not answer' : `answers in ${exactSpan(time)}`}`,
  );
  const onStore = ({ currentTarget }: Event): void => app.show({ store: (currentTarget as HTMLSelectElement).value });
  return html`<header>
      <h1>Locks</h1>
      <label>Store
        <select @change=${onStore}>
          <option value="" ?selected=${view.store === ''}>all</option>
          ${stores.map((store) => html`<option value=${store} ?selected=${store === view.store}>${store}</option>`)}
        </select>
      </label>
      <span>${answering(app)}</span>
      <span>${latency.join(' · ')}</span>
      <span id="connection">${connection}</span>
    </header>
    <div role="alert" class="unseen">${announcement.map((text) => html`<p>${text}</p>`)}</div>
    <main>${alertList(app)} ${top} ${tools()} ${rows} ${bottom} ${eventList(app)} ${leaders} ${graph()} ${processList(app)}</main>
    ${drawer.template()}`;
}

function tools(): TemplateResult {
  const why = refusal(app);
  const rows = table.rows();
  const held = rows.filter(({ holder }) => holder);
  const isOfOneStore = held.every(({ store }) => store === held[0]?.store);
  const whyNotAll =
    why || (held.length > MOST ? `At most ${MOST} keys at once: filter first.` : isOfOneStore ? '' : 'Choose one store first.');
  const onSearch = ({ currentTarget }: Event): void => app.show({ query: (currentTarget as HTMLInputElement).value });
  const shown: readonly Filter[] = filters.filter((filter, index) => index < 4 || filter === view.filter);
  return html`<div class="tools">
    <input id="search" type="search" aria-label="Search" placeholder="/ search key, label, host" .value=${view.query} @input=${onSearch} />
    <div role="group" aria-label="Filter">
      ${shown.map((filter) => html`<button aria-pressed=${filter === view.filter} @click=${() => app.show({ filter })}>${filter}</button>`)}
    </div>
    <span>${rows.length} of ${data.rows.size} keys</span>
    <button ?disabled=${whyNotAll !== '' || held.length === 0} @click=${() => dialog.release(held.flatMap(targetOf))}>Release all shown…</button>
    <button ?disabled=${why !== ''} @click=${() => dialog.hold()}>Hold a key…</button>
    ${whyNotAll && data.hello ? html`<small>${whyNotAll}</small>` : nothing}
  </div>`;
}

function targetOf({ store, key, holder }: Row): Target[] {
  return holder ? [{ store, key, owner: holder.owner, token: holder.token, label: holder.label }] : [];
}

function toggleTable(): void {
  asTable = !asTable;
  version++;
  app.draw();
}

addEventListener('keydown', (event) => {
  const target = event.target as Element;
  if (document.querySelector('dialog[open]') || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/' && !target.matches('input, select')) {
    event.preventDefault();
    document.getElementById('search')?.focus();
  } else if (event.key === 'Escape' && view.open) {
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
  version++;
  table.sort();
  app.draw();
}, 1_000);
drawer.follow(view.open);
drawNow();
