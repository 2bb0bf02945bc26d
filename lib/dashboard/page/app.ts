import { html, nothing, type TemplateResult } from 'lit-html';
import type { RowName } from '../dashboard.protocol.js';
import type { Server } from './server.js';
import type { Data, View } from './state.js';
import { visible } from './words.js';

/** The parts of the page share this. */
export interface App {
  readonly data: Data;
  readonly view: View;
  readonly server: Server;
  /** Grows with each change of the data, and each second. */
  readonly version: number;
  /** The time by the clock of the server. It stands still while nothing comes from the server. */
  now(): number;
  /** Changes the view, the address and the screen. */
  show(change: Partial<View>): void;
  /** Draws the page before the next frame. */
  readonly draw: () => void;
}

export function keyLink(app: App, { store, key }: RowName, text = key): TemplateResult {
  return html`<button class="link" @click=${() => app.show({ open: { store, key } })}>${visible(text)}</button>`;
}

export function silence({ isSilent }: { isSilent: boolean }): TemplateResult | typeof nothing {
  return isSilent ? html`<b class="bad">⚠ silent</b> ` : nothing;
}

/** Why the operator cannot release or hold; `''`: they can. */
export function refusal({ data: { hello } }: App): string {
  if (!hello) return 'The server has not answered yet.';
  return hello.me.mayRelease ? '' : `${hello.me.by ?? 'This account'} may look, but has no right to release.`;
}
