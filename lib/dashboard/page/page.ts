import { html, nothing, render, type TemplateResult } from 'lit-html';
import { VERSION } from '../dashboard.protocol.js';
import { refusal, type App } from './app.js';
import { makeDialog } from './dialog.js';
import { makeDrawer } from './drawer.js';
import { adviceList, alarmList, answering, eventList, numbers, storeList } from './sections.js';
import type { Server } from './server.js';
import { columns, filters, freshAlarms, idOf, readAddress, writeAddress, type Column, type View } from './state.js';
import { makeTable } from './table.js';
import { timeOf } from './words.js';

/** Milliseconds between two questions for the state; and after the last letter of a search. */
const AGAIN = 2_000;
const TYPING = 250;

/** Asks for the state, and draws it whole. */
export function startPage(server: Server): void {
  const spoken = new Set<string>();
  const page = document.getElementById('page') as HTMLElement;
  let announcement: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** A button is pressed: what is under it must stay there. */
  let isPressed = false;
  let heardAt = 0;
  /** The last question, and the last one that had an answer. */
  let [asked, answered] = [0, 0];

  const app: { -readonly [Name in keyof App]: App[Name] } = {
    state: undefined,
    server,
    offline: '',
    view: readAddress(location.search),
    get at() {
      return app.state?.now ?? Date.now();
    },
    now: () => app.at + (app.state ? performance.now() - heardAt : 0),
    draw: () => void (isPressed || render(template(), page)),
    show(change: Partial<View>) {
      const before = app.view;
      const view = (app.view = { ...before, ...change });
      if (writeAddress(view, location.search) !== location.search)
        history.replaceState(null, '', location.pathname + writeAddress(view, location.search));
      drawer.follow(view.open);
      isPressed = false;
      app.draw();
      if (change.open) document.getElementById('opened')?.focus();
      else if (before.open && change.open === null) table.focus(idOf(before.open));
      else if (change.notes !== undefined) document.getElementById('events')?.focus();
      if (view.query !== before.query || view.store !== before.store) askSoon(view.store === before.store ? TYPING : 0);
    },
  };

  const narrow = matchMedia('(max-width: 640px)');
  const askSoon = (delay = 0): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void ask();
    }, delay);
  };
  const dialog = makeDialog(app, document.getElementById('dialog') as HTMLDialogElement, () => askSoon());
  const table = makeTable(app);
  const drawer = makeDrawer(app, dialog.release);

  async function ask(): Promise<void> {
    if (document.visibilityState === 'hidden') return askSoon(AGAIN);
    const question = ++asked;
    const { store, query } = app.view;
    void drawer.ask();
    try {
      const state = await server.state(store, query);
      if (question < answered || store !== app.view.store || query !== app.view.query) return;
      [app.state, app.offline, heardAt, answered] = [state, '', performance.now(), question];
      const fresh = freshAlarms(spoken, state.alarms);
      if (fresh.length > 0) announcement = fresh.map(({ text }) => text);
    } catch (error) {
      if (question > answered) app.offline = (error as Error).message;
    } finally {
      // Another question may be under way, or about to be.
      if (question === asked && timer === undefined) askSoon(AGAIN);
    }
    app.draw();
  }

  function template(): TemplateResult {
    const { state, offline, at, view } = app;
    const alarms = state?.alarms.length ?? 0;
    document.title = alarms > 0 ? `(${alarms}) Locks` : 'Locks';
    const rows = table.template();
    const isOther = state !== undefined && state.version !== VERSION;
    const names = ['', ...(state?.stores.map(({ name }) => name) ?? [])];
    return html`<header>
        <h1>Locks</h1>
        <span id="connection" class=${offline ? 'bad' : nothing}>${offline ? `○ offline: ${offline}` : state ? '● live' : '○ connecting…'}${state ? ` as of ${timeOf(at, Date.now())}` : ''}</span>
        <label>Store ${choice(names, view.store, (store) => app.show({ store }))}</label>
        <span>${offline ? 'processes unknown' : answering(app)}</span>
        <span>${storeList(app)}</span>
      </header>
      <div role="alert" class="unseen">${announcement.map((text) => html`<p>${text}</p>`)}</div>
      ${isOther ? html`<p class="bad" role="status">⚠ The server has another version by now. <button @click=${() => location.reload()}>Reload</button></p>` : nothing}
      <section class=${offline ? 'stale' : nothing} aria-label="Alarms">${alarmList(app)}</section>
      <main class="columns">
        <div id="all" class=${offline ? 'stale' : nothing} ?inert=${narrow.matches && view.open !== null}>
          ${state ? numbers(app, state) : nothing} ${tools()} ${rows} ${state ? [adviceList(state), eventList(app, state)] : nothing}
        </div>
        ${drawer.template()}
      </main>`;
  }

  function tools(): TemplateResult {
    const { view, state } = app;
    const onSearch = ({ currentTarget }: Event): void => app.show({ query: (currentTarget as HTMLInputElement).value });
    return html`<div class="tools">
      <input id="search" type="search" aria-label="Search" placeholder="/ search key, label, host" .value=${view.query} @input=${onSearch} />
      <div role="group" aria-label="Filter">
        ${filters.map((filter) => html`<button aria-pressed=${filter === view.filter} @click=${() => app.show({ filter })}>${filter}</button> `)}
      </div>
      ${narrow.matches ? html`<label>Sort ${choice(columns, view.sort, (sort) => app.show({ sort: sort as Column }))}</label>` : nothing}
      <span>${table.rows().length} of ${state?.found ?? '…'} keys</span>
      <button ?disabled=${refusal(app) !== ''} @click=${() => dialog.hold()}>Hold a key…</button>
    </div>`;
  }

  const release = (): void => {
    isPressed = false;
    // After the click.
    setTimeout(app.draw);
  };
  addEventListener('pointerdown', () => void (isPressed = true));
  for (const event of ['pointerup', 'pointercancel']) addEventListener(event, release);
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
  document.addEventListener('visibilitychange', () => askSoon());
  drawer.follow(app.view.open);
  app.draw();
  void ask();
}

/** A choice of a few words; `''` is all. */
function choice(options: readonly string[], chosen: string, choose: (option: string) => void): TemplateResult {
  const onChange = ({ currentTarget }: Event): void => choose((currentTarget as HTMLSelectElement).value);
  return html`<select @change=${onChange}>${options.map((option) => html`<option value=${option} ?selected=${option === chosen}>${option || 'all'}</option>`)}</select>`;
}
