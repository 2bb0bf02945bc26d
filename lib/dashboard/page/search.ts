import { html, nothing, type TemplateResult } from 'lit-html';
import type { App } from './app.js';

export interface Search {
  /** Why the table is empty, and what to do. */
  none(): TemplateResult;
  /** The keys that the table may lack. */
  listed(): TemplateResult;
}

/** Says how much of the stores is in the table, and asks them for what is not. */
export function makeSearch(app: App): Search {
  let asked = '';
  let answer = '';
  const ask = async (): Promise<void> => {
    const text = (asked = app.view.query);
    answer = 'Asking…';
    app.draw();
    const stores = app.view.store ? [app.view.store] : (app.data.hello?.stores ?? []);
    try {
      const found = await Promise.all(stores.map((store) => app.server.find(store, text.replaceAll('^', ''))));
      const count = found.reduce((sum, each) => sum + each.found, 0);
      answer = `The store has ${count === 0 ? 'no such key in use' : `${count} in use`}${found.every(({ isWhole }) => isWhole) ? '' : ', and perhaps more'}.`;
    } catch (error) {
      answer = `⚠ ${(error as Error).message}`;
    }
    app.draw();
  };
  const gaps = (): string[] =>
    Object.entries(app.data.stats.listings).flatMap(([store, { state, keys, hasEvents }]) => {
      if (state === 'under way') return `${store} is being listed: ${keys} keys so far.`;
      if (state === 'failed') return `${store} could not be listed; it is tried again.`;
      if (state === 'cut') return `${store} has more keys than the ${keys} that are listed.`;
      return hasEvents ? [] : `${store} sends no events: it is listed every few seconds.`;
    });
  const button = (): TemplateResult | typeof nothing => {
    const { query } = app.view;
    if (!query) return nothing;
    return html` <button @click=${ask}>Ask the store for "${query}"</button> <span role="status">${asked === query ? answer : ''}</span>`;
  };
  return {
    none: () => html`No key of the table is like this. ${gaps().join(' ')}${button()}`,
    listed: () => html`<p class="listed">${gaps().join(' ')}${gaps().length > 0 ? button() : nothing}</p>`,
  };
}
