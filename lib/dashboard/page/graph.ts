import { html, type TemplateResult } from 'lit-html';
import type { KeyAnswer, RowName } from '../dashboard.protocol.js';
import { keyLink, type App } from './app.js';
import { idOf, processOf } from './state.js';

/** The keys with the most waiters that are asked about, at most. */
const ASKED = 20;

interface Edge {
  readonly store: string;
  /** A key that a waiter holds, and the one that it waits for. */
  readonly held: string;
  readonly wanted: string;
  readonly waiter: string;
  readonly holder: string;
}

/** Each edge is a caller that holds one key and waits for another. */
function edgesOf({ store, key: wanted, holders, waiters }: KeyAnswer): Edge[] {
  const holder = holders.map(processOf).join(', ') || 'nobody';
  return waiters.flatMap((each) => {
    const waiter = `${processOf(each)} (${each.label ?? '–'})`;
    return each.holding.map((held) => ({ store, held, wanted, waiter, holder }));
  });
}

/** The graph of holders, keys and waiters. It asks the store only when it is opened. */
export function makeGraph(app: App): () => TemplateResult {
  let edges: Edge[] | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    const waited = [...app.data.rows.values()].filter(({ waiters }) => waiters > 0).sort((a, b) => b.waiters - a.waiters);
    const names: RowName[] = [...app.data.stats.alerts.flatMap(({ row }) => row ?? []), ...waited];
    const answers = new Map<string, KeyAnswer>();
    // The keys of a chain come next: a deadlock is found however few its waiters are.
    for (let name = names.shift(); name && answers.size < ASKED; name = names.shift()) {
      if (answers.has(idOf(name))) continue;
      const answer = await app.server.key(name).catch(() => undefined);
      if (!answer) continue;
      answers.set(idOf(name), answer);
      names.unshift(...answer.chain);
    }
    edges = [...answers.values()].flatMap(edgesOf);
    isAsking = false;
    app.draw();
  };
  const onToggle = ({ currentTarget }: Event): void => {
    if ((currentTarget as HTMLDetailsElement).open && !edges) void ask();
  };
  const line = ({ store, held, wanted, waiter, holder }: Edge): TemplateResult =>
    html`<li>${waiter} holds ${keyLink(app, { store, key: held })} and waits for ${keyLink(app, { store, key: wanted })}, held by ${holder}</li>`;
  return () => html`<details @toggle=${onToggle}>
    <summary>Wait graph</summary>
    <p>${edges?.length === 0 ? 'No caller that waits holds another key.' : ''} <button @click=${ask}>Ask again</button></p>
    <ul>${edges?.map(line)}</ul>
  </details>`;
}
