import { html, render, type TemplateResult } from 'lit-html';
import type { ReleaseAnswer, RowName } from '../dashboard.protocol.js';
import type { App } from './app.js';
import { lengthOf, visible } from './words.js';

/** A holder as the operator has seen it. It is released only if it is still this one. */
export interface Target extends RowName {
  readonly owner: string;
  readonly token: number | null;
  readonly label: string | null;
}

export interface Dialog {
  readonly release: (target: Target) => void;
  readonly hold: () => void;
}

const OUTCOMES: Record<ReleaseAnswer['outcome'], string> = {
  'gave back': 'released: its holder was asked and let it go',
  forced: 'taken by force',
  changed: 'changed: nothing was done, as ',
};
const TIMES = [[0, 'not at all'], [60_000, '1 min'], [600_000, '10 min'], [3_600_000, '1 h']] as const; // prettier-ignore

/** Asks for a reason before it does anything; `done` is called when something may have changed. */
export function makeDialog(app: App, element: HTMLDialogElement, done: () => void): Dialog {
  let isBusy = false;
  let problem = '';

  const close = (): void => element.close();
  const draw = (body: TemplateResult): void => void render(html`<div class="question">${body}</div>`, element);
  const open = (body: () => TemplateResult): void => {
    problem = '';
    draw(body());
    if (!element.open) element.showModal();
    element.querySelector<HTMLElement>('[data-first]')?.focus();
  };

  /** A form, which says what went wrong above its buttons. */
  const form = (
    action: string,
    fields: TemplateResult,
    send: (values: Record<string, string>) => Promise<TemplateResult>,
  ): TemplateResult => {
    const again = (): void => draw(form(action, fields, send));
    const onSubmit = async (event: SubmitEvent): Promise<void> => {
      event.preventDefault();
      if (isBusy) return;
      [isBusy, problem] = [true, ''];
      const values = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
      again();
      try {
        const answer = await send({ ...values, reason: values['reason']?.trim() ?? '' });
        open(() => html`${answer}<menu><button class="act" @click=${close} data-first>Close</button></menu>`);
      } catch (error) {
        problem = (error as Error).message;
      }
      isBusy = false;
      if (problem) again();
      done();
    };
    return html`<form @submit=${onSubmit}>
      <h2 id="question">${action}?</h2>
      ${fields}
      <label>Reason, which the log and the callers show <input name="reason" required minlength="3" maxlength="200" autocomplete="off" data-first /></label>
      <p role="alert">${problem && `⚠ ${problem}`}</p>
      <menu><button type="button" @click=${close}>Cancel</button><button class="act" ?disabled=${isBusy}>${isBusy ? 'Wait…' : action}</button></menu>
    </form>`;
  };
  const releaseForm = ({ store, key, owner, token, label }: Target): TemplateResult =>
    form(
      'Take it away',
      html`<p class="target"><b>${visible(key)}</b> ${label && visible(label)}<br />owner ${owner}, token ${token ?? 'unknown'}</p>
        <p>The call of the holder is aborted with your reason. If it does not release the key in time, the key is taken by force. The next waiter gets it, while work that does not stop may go on: only a fencing token keeps it out. Nothing is done to a key whose owner or token has changed.</p>
        <fieldset><legend>The holder</legend>
          <label><input type="radio" name="grace" value="5000" checked /> is asked, for 5 s</label>
          <label><input type="radio" name="grace" value="0" /> loses it now</label>
        </fieldset>
        <label>Keep it closed afterwards <select name="keepFor">${TIMES.map(([time, text]) => html`<option value=${time}>${text}</option>`)}</select></label>`,
      async ({ reason = '', grace, keepFor }) => {
        const order = { store, key, owner, token, reason, grace: Number(grace), keepFor: Number(keepFor) };
        const { outcome, holder } = await app.server.release(order);
        const now = holder === owner ? 'its owner has acquired it again' : `${holder ?? 'nobody'} has it now`;
        return html`<h2 id="question">Outcome</h2><p class="target" role="status"><b>${visible(key)}</b>: ${OUTCOMES[outcome]}${outcome === 'changed' ? now : ''}</p>`;
      },
    );

  const holdForm = (): TemplateResult =>
    form(
      'Hold a key',
      html`<p>Nobody else gets the key for this time. To end it earlier, take the key away.</p>
        <label>Key, without the namespace <input name="key" required maxlength="512" autocomplete="off" data-first /></label>
        <label>Store <select name="store">${app.state?.stores.map(({ name }) => html`<option ?selected=${name === app.view.store}>${name}</option>`)}</select></label>
        <label>For <input name="for" required autocomplete="off" placeholder="2h, 1 h 30 min, until 17:00" /></label>`,
      async ({ store = '', key = '', reason = '', for: time }) => {
        const length = lengthOf(time ?? '', app.now());
        if (length === null) throw new Error('For how long? Such as 2h, 1 h 30 min, or until 17:00.');
        const { isHeld } = await app.server.hold({ store, key, for: length, reason });
        return html`<h2 id="question">Outcome</h2><p role="status"><b>${key}</b> ${isHeld ? 'is held.' : 'is not free, so nothing was done.'}</p>`;
      },
    );

  return {
    release: (target) => open(() => releaseForm(target)),
    hold: () => open(holdForm),
  };
}
