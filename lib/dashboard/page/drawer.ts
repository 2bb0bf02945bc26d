import { html, nothing, type TemplateResult } from 'lit-html';
import type { KeyAnswer, RowName, WaiterAnswer } from '../dashboard.protocol.js';
import { isStale, keyLink, refusal, silence, type App } from './app.js';
import type { Target } from './dialog.js';
import { noteLine } from './sections.js';
import { idOf, keptWords, processOf } from './state.js';
import { exactSpan, span, timeOf, visible } from './words.js';

export interface Drawer {
  template(): TemplateResult | typeof nothing;
  /** Shows this key from now on. */
  follow(name: RowName | null): void;
  /** Asks the store for the key. */
  ask(): Promise<void>;
}

export function makeDrawer(app: App, release: (target: Target) => void): Drawer {
  let name: RowName | null = null;
  let answer: KeyAnswer | undefined;
  let copied = '';
  let problem = '';

  const ask = async (): Promise<void> => {
    const asked = name;
    if (!asked) return;
    let [found, refused] = [answer, ''];
    try {
      found = await app.server.key(asked);
    } catch (error) {
      refused = (error as Error).message;
    }
    if (asked !== name) return;
    [answer, problem] = [found, refused];
    app.draw();
  };
  const left = (time: number): string => exactSpan(Math.max(0, time));
  const ageOf = (since: number | null): string => span(since && (answer?.at ?? app.at) - since);

  const copy = async ({ store, key, holders, waiters, waiterCount }: KeyAnswer): Promise<void> => {
    const holder = ({ label, since, token, owner }: KeyAnswer['holders'][number]): string =>
      `held by ${owner}, ${label ?? 'no label'}, since ${since === null ? 'unknown' : `${new Date(since).toISOString()} (${ageOf(since)})`}, token ${token ?? 'unknown'}`;
    const first = waiters[0] && `, the first for ${ageOf(waiters[0].since)}: ${processOf(waiters[0])}, ${waiters[0].label ?? 'no label'}`;
    const lines = [`key ${key} (store ${store})`, ...(holders.length > 0 ? holders.map(holder) : ['nobody holds it'])];
    const text = [...lines, `waiters: ${waiterCount}${first ?? ''}`, location.href].join('\n');
    // Pages over HTTP have no clipboard.
    copied = await (navigator.clipboard?.writeText(text) ?? Promise.reject(new Error())).then(() => 'Copied.', () => text); // prettier-ignore
    app.draw();
  };

  const endOf = ({ endsAt, store }: { endsAt: number | null; store: string }): string => {
    const isOver = endsAt !== null && endsAt <= app.now() && (problem !== '' || isStale(app, store));
    if (isOver) return `ended ${timeOf(endsAt, app.at)}, not confirmed`;
    return endsAt === null ? '–' : left(endsAt - (answer?.at ?? app.at));
  };

  const holderOf = (holder: KeyAnswer['holders'][number], { store, key }: RowName, why: string): TemplateResult => {
    const { owner, token, label, since, isSilent, saidAt, endsAt } = holder;
    const kept = keptWords(holder, app.at);
    const said = isSilent && saidAt !== null ? ` (said ${ageOf(saidAt)} ago)` : '';
    const facts = {
      doing: label && visible(label) + said,
      app: holder.app,
      'host, pid': `${holder.host}, ${holder.pid}`,
      since: since && `${timeOf(since, app.at)}, for ${ageOf(since)}`,
      token,
      'lease ends in': endOf({ endsAt, store }),
      owner,
    };
    return html`<li>
      <b>${visible(processOf(holder))}</b> ${silence(holder)}${kept && `(${kept})`}${holder.isShared ? ' (shared)' : ''}
      <dl>${Object.entries(facts).map(([term, fact]) => html`<dt>${term}</dt><dd>${fact ?? '–'}</dd>`)}</dl>
      <button ?disabled=${!!why} aria-describedby=${why ? 'refusal' : nothing} @click=${() => release({ store, key, owner, token: isSilent ? null : token, label })}>Take it away…</button>
    </li>`;
  };

  const waiterOf = (waiter: WaiterAnswer, store: string): TemplateResult => {
    const { since, patienceLeft, holding, label, count } = waiter;
    const end = patienceLeft == null ? '' : `, gives up in ${left(patienceLeft)}`;
    return html`<li><b>${visible(processOf(waiter))}</b> ${silence(waiter)}${visible(label ?? '')}${count > 1 ? ` × ${count}, the first` : ','} for ${ageOf(since)}${end}${holding.map((key, index) => html`${index > 0 ? ', ' : ', holds '}${keyLink(app, { store, key })}`)}</li>`;
  };

  const body = (found: KeyAnswer): TemplateResult => {
    const { kind, store, holders, holderCount, waiters, waiterCount, chain, notes, fencingToken, permits, count, endsAt } = found;
    const why = refusal(app);
    const shown = waiters.reduce((sum, waiter) => sum + waiter.count, 0);
    const facts = [
      `${kind} of the store ${store}`,
      fencingToken !== null && `last token ${fencingToken}`,
      permits !== null && `${permits} permits`,
      count !== null && `${count} to count down`,
      holders.length === 0 && endsAt !== null && `ends in ${left(endsAt - found.at)}`,
    ];
    return html`<p>${facts.filter(Boolean).join(' · ')}</p>
      ${chain.length > 1 ? html`<p><b>Chain:</b> ${chain.map((each, index) => html`${index > 0 ? ' → ' : ''}${keyLink(app, each)}`)}</p>` : nothing}
      <h3>Holders: ${holderCount}</h3>
      ${why ? html`<p id="refusal">${why}</p>` : nothing}
      <ul>${holders.map((holder) => holderOf(holder, found, why))}</ul>
      <button @click=${() => copy(found)}>Copy as text</button>
      <pre role="status">${copied}</pre>
      <h3>Waiters: ${waiterCount}</h3>
      <ol>${waiters.map((waiter) => waiterOf(waiter, store))}</ol>
      ${waiterCount > shown ? html`<p>The first ${shown} are shown.</p>` : nothing}
      <h3>Last events: ${notes.length}</h3>
      <ul>${notes.map((note) => noteLine(app, note))}</ul>`;
  };

  return {
    ask,
    follow(next) {
      if (next && name && idOf(next) === idOf(name)) return;
      [name, answer, problem, copied] = [next, undefined, '', ''];
      void ask();
    },
    template: () =>
      name
        ? html`<section id="drawer" aria-labelledby="opened">
            <header><h2 id="opened" tabindex="-1">${visible(name.key)}</h2><button aria-label="Close" @click=${() => app.show({ open: null })}>✕</button></header>
            <p role="alert">${problem && `⚠ ${problem}`}</p>
            ${answer ? body(answer) : problem ? nothing : 'Asking the store…'}
          </section>`
        : nothing,
  };
}
