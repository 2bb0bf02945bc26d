import { html, nothing, svg, type TemplateResult } from 'lit-html';
import type { KeyAnswer, RowName } from '../dashboard.protocol.js';
import { keyLink, type App } from './app.js';
import { idOf, processOf } from './state.js';

/** The keys with the most waiters that are asked about, at most. */
const ASKED = 20;
const DRAWN = 12;
const SIZE = 300;
const CENTRE = SIZE / 2;
const RADIUS = 90;

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

/** The list says all of it; the picture is for the eye. It asks the store only when it is opened. */
export function makeGraph(app: App): () => TemplateResult {
  let edges: Edge[] | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    const waited = [...app.data.rows.values()].filter(({ waiters }) => waiters > 0).sort((a, b) => b.waiters - a.waiters);
    const names: RowName[] = [...app.data.alerts.flatMap(({ row }) => row ?? []), ...waited];
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
    <div class="graph"><ul>${edges?.map(line)}</ul>${edges?.length ? picture(edges) : nothing}</div>
  </details>`;
}

/** The keys on a circle. */
function picture(edges: readonly Edge[]): TemplateResult {
  const keys = [...new Set(edges.flatMap(({ held, wanted }) => [held, wanted]))].slice(0, DRAWN);
  const point = (key: string): [number, number] => {
    const angle = (keys.indexOf(key) / keys.length) * 2 * Math.PI;
    return [CENTRE + RADIUS * Math.sin(angle), CENTRE - RADIUS * Math.cos(angle)];
  };
  const arrow = ({ held, wanted }: Edge): unknown => {
    if (!keys.includes(held) || !keys.includes(wanted)) return nothing;
    const [[x, y], [toX, toY]] = [point(held), point(wanted)];
    // Bent, so that the two arrows of a deadlock do not cover each other.
    const bend = [(x + toX) / 2 + (toY - y) / 5, (y + toY) / 2 - (toX - x) / 5];
    return svg`<path d=${`M${x},${y} Q${bend.join()} ${toX},${toY}`} marker-end="url(#arrow)" />`;
  };
  const node = (key: string): unknown => {
    const [x, y] = point(key);
    return svg`<circle cx=${x} cy=${y} r="5" /><text x=${x} y=${y < CENTRE ? y - 10 : y + 20}>${key.replace(/(.{19}).{2,}/, '$1…')}</text>`;
  };
  return html`<svg class="waits" viewBox="0 0 ${SIZE} ${SIZE}" aria-hidden="true">
    <marker id="arrow" viewBox="0 0 10 10" refX="15" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 10,5 0,10z" /></marker>
    ${edges.map(arrow)}${keys.map(node)}
  </svg>`;
}
