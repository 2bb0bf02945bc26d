import { html, render, type TemplateResult } from 'lit-html';
import type { ReleaseAnswer, RowName } from '../dashboard.protocol.js';
import type { App } from './app.js';
import { count } from './words.js';

/** A holder as the operator has seen it. It is released only if it is still this one. */
export interface Target extends RowName {
  readonly owner: string;
  readonly token: number | null;
  readonly label: string | null;
}

const MINUTE = 60_000;
const OUTCOMES: Record<ReleaseAnswer[number]['outcome'], string> = {
  'gave back': 'released: its holder was asked and let it go',
  forced: 'taken by force',
  changed: 'changed: nothing was done',
};
const TIMES: readonly [number, string][] = [
  [0, 'not at all'],
  [MINUTE, '1 min'],
  [10 * MINUTE, '10 min'],
  [60 * MINUTE, '1 h'],
];

export interface Dialog {
  release(targets: readonly Target[]): void;
  hold(): void;
}

/** Asks for a reason before it does anything; `done` is called when something may have changed. */
export function makeDialog(app: App, element: HTMLDialogElement, done: () => void): Dialog {
  let isBusy = false;
  let problem = '';

  const close = (): void => element.close();
  // A click on what is behind the dialog closes it; Esc does by itself.
  element.addEventListener('click', ({ target }) => target === element && close());

  const draw = (body: TemplateResult): void => void render(html`<div class="question">${body}</div>`, element);
  const open = (body: () => TemplateResult): void => {
    problem = '';
    draw(body());
    if (!element.open) element.showModal();
    element.querySelector<HTMLElement>('[data-first]')?.focus();
  };

  /** Sends what the form says; what goes wrong is shown above its buttons. */
  const onSubmit = (body: () => TemplateResult, send: (form: FormData) => Promise<TemplateResult>) => async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    problem = '';
    const form = new FormData(event.currentTarget as HTMLFormElement);
    draw(body());
    try {
      const answer = await send(form);
      isBusy = false;
      open(() => answer);
      done();
    } catch (error) {
      isBusy = false;
      problem =
        error instanceof TypeError ? 'The server does not answer: it is unknown whether anything was done.' : (error as Error).message;
      draw(body());
      done();
    }
  };

  const buttons = (action: string): TemplateResult => html`
    <p role="alert">${problem && `⚠ ${problem}`}</p>
    <menu>
      <button type="button" @click=${close}>Cancel</button>
      <button class="act" ?disabled=${isBusy}>${isBusy ? 'Wait…' : action}</button>
    </menu>
  `;
  const reason = html`<label
    >Reason, for the log and the holder <input name="reason" required minlength="3" maxlength="200" autocomplete="off" data-first
  /></label>`;
  const times = (name: string, from: number): TemplateResult =>
    html`<select name=${name}>
      ${TIMES.slice(from).map(([time, text]) => html`<option value=${time}>${text}</option>`)}
    </select>`;
  const listOf = (targets: readonly Target[]): TemplateResult =>
    html`<ul class="targets">
      ${targets.map(({ key, owner, token, label }) => html`<li><b>${key}</b> ${label ?? ''}<br />owner ${owner}, token ${token ?? 'unknown'}</li>`)}
    </ul>`;
  const closing = html`<menu><button class="act" @click=${close} data-first>Close</button></menu>`;

  const result = (targets: readonly Target[], answers: ReleaseAnswer): TemplateResult => html`
    <h2 id="question">Outcome</h2>
    <ul class="targets" role="status">
      ${answers.map(({ key, outcome, holder }, index) => {
        const now =
          holder === targets[index]?.owner ? 'its owner has acquired it again' : holder ? `${holder} has it now` : 'nobody has it now';
        const next = outcome === 'changed' ? `, as ${now}` : '';
        return html`<li><b>${key}</b>: ${OUTCOMES[outcome]}${next}</li>`;
      })}
    </ul>
    ${closing}
  `;

  const releaseForm = (targets: readonly Target[]) => (): TemplateResult => {
    const what = targets.length === 1 ? 'Take it away' : `Take ${targets.length} keys away`;
    const send = async (form: FormData): Promise<TemplateResult> => {
      const keys = targets.map(({ key, owner, token }) => ({ key, owner, token }));
      const [grace, keepFor] = [Number(form.get('grace')), Number(form.get('keepFor'))];
      const order = { store: targets[0]?.store ?? '', keys, reason: String(form.get('reason')).trim(), grace, keepFor };
      return result(targets, await app.server.release(order));
    };
    return html`<form @submit=${onSubmit(releaseForm(targets), send)}>
      <h2 id="question">${what}?</h2>
      ${listOf(targets)}
      <p>
        The holder is asked to stop: its abort signal fires and its call fails with your reason. If it has not released the key in time, the
        key is taken by force and the next waiter gets it. Work that does not stop may then run twice at once, so fence it by the token.
        Nothing is done to a key whose owner or token has changed.
      </p>
      ${reason}
      <fieldset>
        <legend>The holder</legend>
        <label><input type="radio" name="grace" value="5000" checked /> is asked, for 5 s</label>
        <label><input type="radio" name="grace" value="0" /> loses it now</label>
      </fieldset>
      <label>Keep the key closed afterwards ${times('keepFor', 0)}</label>
      ${buttons(what)}
    </form>`;
  };

  const listFirst = (targets: readonly Target[]): TemplateResult => html`
    <h2 id="question">Release ${count(targets.length, 'key')}?</h2>
    <p>These holders would lose their key:</p>
    ${listOf(targets)}
    <menu>
      <button @click=${close}>Cancel</button>
      <button class="act" data-first @click=${() => open(releaseForm(targets))}>Continue with these ${targets.length}…</button>
    </menu>
  `;

  const holdForm = (): TemplateResult => {
    const stores = app.data.hello?.stores ?? [];
    const send = async (form: FormData): Promise<TemplateResult> => {
      const key = String(form.get('key'));
      await app.server.hold({
        store: String(form.get('store')),
        key,
        for: Number(form.get('for')),
        reason: String(form.get('reason')).trim(),
      });
      return html`<h2 id="question">Held</h2>
        <p role="status"><b>${key}</b> is held. Callers see your reason.</p>
        ${closing}`;
    };
    return html`<form @submit=${onSubmit(holdForm, send)}>
      <h2 id="question">Hold a key</h2>
      <p>Nobody else gets the key for this time. Callers that are refused see the reason. To end it earlier, take the key away.</p>
      <label>Key <input name="key" required maxlength="512" autocomplete="off" data-first /></label>
      <label
        >Store
        <select name="store">
          ${stores.map((store) => html`<option ?selected=${store === app.view.store}>${store}</option>`)}
        </select></label
      >
      <label>For ${times('for', 1)}</label>
      <label>Reason <input name="reason" required minlength="3" maxlength="200" autocomplete="off" /></label>
      ${buttons('Hold it')}
    </form>`;
  };

  return {
    release: (targets) => open(targets.length === 1 ? releaseForm(targets) : () => listFirst(targets)),
    hold: () => open(holdForm),
  };
}
