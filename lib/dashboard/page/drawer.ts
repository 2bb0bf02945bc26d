import { html, nothing, type TemplateResult } from 'lit-html';
import type { KeyAnswer, RowName, WaiterAnswer } from '../dashboard.protocol.js';
import { keyLink, refusal, type App } from './app.js';
import type { Target } from './dialog.js';
import { noteLine } from './sections.js';
import { idOf, processOf } from './state.js';
import { exactSpan, span, timeOf } from './words.js';

const EACH = 1_000;

export interface Drawer {
  template(): TemplateResult | typeof nothing;
  /** Asks for this key from now on, each second. */
  follow(name: RowName | null): void;
  /** The truth may have changed. */
  ask(): void;
}

type Holder = KeyAnswer['holders'][number];

export function makeDrawer(app: App, release: (targets: readonly Target[]) => void): Drawer {
  let name: RowName | null = null;
  let answer: KeyAnswer | undefined;
  let answeredAt = 0;
  let problem = '';
  let timer: ReturnType<typeof setTimeout> | undefined;

  const ask = async (): Promise<void> => {
    clearTimeout(timer);
    const asked = name;
    if (!asked) return;
    try {
      const found = document.visibilityState === 'hidden' ? answer : await app.server.key(asked);
      if (asked !== name) return;
      if (found !== answer) [answer, answeredAt] = [found, performance.now()];
      problem = '';
    } catch (error) {
      if (asked !== name) return;
      problem = error instanceof TypeError ? 'The server does not answer.' : (error as Error).message;
    }
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), EACH);
    app.draw();
  };
  /** The answer grows old until the next one comes. */
  const left = (time: number): string => exactSpan(Math.max(0, time - (performance.now() - answeredAt)));

  const holderOf = (holder: Holder, why: string): TemplateResult => {
    const { owner, token, label, since, remaining } = holder;
    const trace = owner.split(';')[1]?.split('-')[0];
    const traceUrl = trace && app.data.hello?.traceUrl?.replace('{traceId}', encodeURIComponent(trace));
    const targets = name && [{ ...name, owner, token, label }];
    return html`<li>
      <b>${processOf(holder)}</b> ${holder.isSilent ? html`<b class="bad">⚠ silent: its process does not answer</b>` : nothing}
      ${holder.isShared ? '(shared)' : nothing}${holder.phase === 'kept' ? ' (released, kept for its minimum)' : nothing}
      <dl>
        <dt>doing</dt>
        <dd>${label ?? '–'}</dd>
        <dt>app</dt>
        <dd>${holder.app}</dd>
        <dt>host, pid</dt>
        <dd>${holder.host}, ${holder.pid}</dd>
        <dt>since</dt>
        <dd>${since === null ? '–' : `${timeOf(since)}, for ${span(app.now() - since)}`}</dd>
        <dt>token</dt>
        <dd>${token ?? '–'}</dd>
        <dt>lease ends in</dt>
        <dd class="left">${remaining === null ? 'no end' : left(remaining)}</dd>
        <dt>owner</dt>
        <dd>${owner}</dd>
      </dl>
      ${traceUrl ? html`<a href=${traceUrl} target="_blank" rel="noopener noreferrer">Trace of the holder</a>` : nothing}
      <button ?disabled=${why !== ''} aria-describedby=${why ? 'refusal' : nothing} @click=${() => targets && release(targets)}>
        Take it away…
      </button>
    </li>`;
  };

  const waiterOf = (waiter: WaiterAnswer): TemplateResult => {
    const { since, patienceLeft, holding } = waiter;
    const end = patienceLeft === null ? ', waits without limit' : patienceLeft === undefined ? '' : `, gives up in ${left(patienceLeft)}`;
    const keys = name ? holding.map((key, index) => html`${index > 0 ? ', ' : ''}${keyLink(app, { store: name?.store ?? '', key })}`) : [];
    return html`<li>
      <b>${processOf(waiter)}</b>${waiter.isSilent ? html` <b class="bad">⚠ silent</b>` : nothing} ${waiter.label ?? ''},
      ${since === null ? 'time unknown' : `for ${span(app.now() - since)}`}${end}${keys.length > 0 ? html`, holds ${keys}` : nothing}
    </li>`;
  };

  const body = (found: KeyAnswer): TemplateResult => {
    const { holders, holderCount, waiters, waiterCount, chain, notes, fencingToken, permits, count, remaining } = found;
    const why = refusal(app);
    const facts = [
      found.kind,
      `store ${found.store}`,
      fencingToken !== null && `last token ${fencingToken}`,
      permits !== null && `${permits} permits`,
      count !== null && `${count} to count down`,
      holders.length === 0 && remaining !== null && `ends in ${left(remaining)}`,
    ];
    return html`<p>${facts.filter(Boolean).join(' · ')}</p>
      ${chain.length > 1 ? html`<p><b>Chain:</b> ${chain.map((each, index) => html`${index > 0 ? ' → ' : ''}${keyLink(app, each)}`)}</p>` : nothing}
      <h3>${holderCount === 0 ? 'No holder' : holderCount === 1 ? 'Holder' : `${holderCount} holders`}</h3>
      ${why && holderCount > 0 ? html`<p id="refusal">${why}</p>` : nothing}
      <ul>
        ${holders.map((holder) => holderOf(holder, why))}
      </ul>
      <h3>${waiterCount === 0 ? 'No waiter' : `Waiters: ${waiterCount}`}</h3>
      <ol>
        ${waiters.map(waiterOf)}
      </ol>
      ${waiterCount > waiters.length ? html`<p>The first ${waiters.length} are shown.</p>` : nothing}
      <h3>Last events</h3>
      ${
        notes.length === 0
          ? html`<p>None is known.</p>`
          : html`<ul>
              ${notes.map((note) => noteLine(note))}
            </ul>`
      }`;
  };

  return {
    ask: () => void ask(),
    follow(next) {
      if (next && name && idOf(next) === idOf(name)) return;
      name = next;
      answer = undefined;
      problem = '';
      void ask();
    },
    template() {
      if (!name) return nothing;
      return html`<section id="drawer" aria-labelledby="opened">
        <header>
          <h2 id="opened" tabindex="-1">${name.key}</h2>
          <button aria-label="Close" @click=${() => app.show({ open: null })}>✕</button>
        </header>
        ${problem ? html`<p role="alert">⚠ ${problem}</p>` : nothing}
        ${answer ? body(answer) : problem ? nothing : html`<p>Asking the store…</p>`}
      </section>`;
    },
  };
}
