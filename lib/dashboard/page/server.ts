/** The server as the page sees it. The demo is another one. */
import type { HoldAnswer, HoldOrder, KeyAnswer, ReleaseAnswer, ReleaseOrder, RowName, PageState } from '../dashboard.protocol.js';

export interface Server {
  /** @param query only rows with these words. */
  state(store: string, query: string): Promise<PageState>;
  key(name: RowName): Promise<KeyAnswer>;
  release(order: ReleaseOrder): Promise<ReleaseAnswer>;
  hold(order: HoldOrder): Promise<HoldAnswer>;
}

/** Milliseconds after which a server without an answer is offline. */
const LONGEST_ANSWER = 5_000;
const REFUSALS: Record<number, string> = {
  403: 'You have no right to do this.',
  422: 'The server does not accept these values.',
  429: 'Too many requests: try again in a second.',
};

export function serverAt(base: string): Server {
  return {
    state: (store, q) => ask(`${base}/state?${String(new URLSearchParams({ store, q }))}`),
    key: ({ store, key }) => ask(`${base}/key?${String(new URLSearchParams({ store, key }))}`),
    release: (order) => ask(`${base}/release`, order),
    hold: (order) => ask(`${base}/hold`, order),
  };
}

/** @throws an error whose message can be shown. */
async function ask<T>(url: string, order?: unknown): Promise<T> {
  const headers = { 'x-lock-dashboard': '1', 'content-type': 'application/json' };
  const options =
    order === undefined
      ? { headers, signal: AbortSignal.timeout(LONGEST_ANSWER) }
      : { headers, method: 'POST', body: JSON.stringify(order) };
  const failed = (): never => {
    throw new Error(`The server does not answer${order === undefined ? '.' : ': it is unknown whether anything was done.'}`);
  };
  const response = await fetch(url, options).catch(failed);
  const text = await response.text().catch(failed);
  const answer = parsed(text);
  if (response.ok && answer !== undefined) return answer as T;
  const { message = response.headers.get('content-type')?.startsWith('text/plain') ? text : '' } = (answer ?? {}) as { message?: unknown };
  throw new Error(`${REFUSALS[response.status] ?? `The server answers ${response.status}.`} ${String(message)}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
