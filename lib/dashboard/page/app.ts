import { html, nothing, type TemplateResult } from 'lit-html';
import type { RowName, PageState } from '../dashboard.protocol.js';
import type { Server } from './server.js';
import type { View } from './state.js';
import { visible } from './words.js';

/** The parts of the page share this. */
export interface App {
  /** The last answer of the server; `undefined`: none yet. */
  readonly state: PageState | undefined;
  readonly view: View;
  readonly server: Server;
  /** Why the server does not answer; `''`: it does. */
  readonly offline: string;
  /** The time of the state, by the clock of the server: ages are as of then. */
  readonly at: number;
  /** The present time by the clock of the server. */
  now(): number;
  /** Changes the view, the address and the screen. */
  show(change: Partial<View>): void;
  /** Draws the page. */
  readonly draw: () => void;
}

export function keyLink(app: App, { store, key }: RowName, text = key): TemplateResult {
  return html`<button class="link" @click=${() => app.show({ open: { store, key } })}>${visible(text)}</button>`;
}

export function silence({ isSilent }: { isSilent: boolean }): TemplateResult | typeof nothing {
  return isSilent ? html`<b class="bad">⚠ silent</b> ` : nothing;
}

/** Whether nothing is known of this store now: it does not answer, or the server does not. */
export function isStale({ state, offline }: App, store: string): boolean {
  return offline !== '' || (state?.stores.some(({ name, isAway }) => name === store && isAway) ?? false);
}

/** Why the operator cannot release or hold; `''`: they can. */
export function refusal({ state }: App): string {
  if (!state) return 'The server has not answered yet.';
  return state.me.mayRelease ? '' : `${state.me.by ?? 'This account'} may look, but has no right to release.`;
}
