/** The server as the page sees it. The demo is another one. */
import type { FindAnswer, HoldOrder, KeyAnswer, Messages, ReleaseAnswer, ReleaseOrder, RowName } from '../dashboard.protocol.js';

export interface Server {
  /** Calls `take` with each message until the function that it returns is called. */
  open(take: Take, isLive: (isLive: boolean, why?: string) => void): () => void;
  key(name: RowName): Promise<KeyAnswer>;
  find(store: string, text: string): Promise<FindAnswer>;
  release(order: ReleaseOrder): Promise<ReleaseAnswer>;
  /** `isHeld: false`: the key was not free. */
  hold(order: HoldOrder): Promise<{ readonly isHeld: boolean }>;
}

export type Take = <Event extends Exclude<keyof Messages, 'end'>>(event: Event, message: Messages[Event]) => void;

const RETRY = 15_000;
/** The server says something each second: after so long without it, the connection is not alive, whatever the browser says. */
const SILENCE = 5_000;
/** A question without an answer is asked again then. A search takes ten seconds at most. */
const LONGEST_ANSWER = 12_000;
const EVENTS = ['hello', 'delta', 'stats', 'notes'] as const;
const REFUSALS: Record<number, string> = {
  403: 'You have no right to do this.',
  422: 'The server does not accept these values.',
  429: 'Too many requests: try again in a second.',
};

export function serverAt(base: string): Server {
  return {
    open(take, isLive) {
      let source: EventSource | undefined;
      let retry: ReturnType<typeof setTimeout> | undefined;
      let watch: ReturnType<typeof setTimeout> | undefined;
      const end = (): void => {
        clearTimeout(retry);
        clearTimeout(watch);
        source?.close();
      };
      const endAndRetry = (why: string, delay = RETRY): void => {
        end();
        isLive(false, why);
        retry = setTimeout(connect, delay);
      };
      const connect = (): void => {
        let isHeard = false;
        const opened = (source = new EventSource(`${base}/events`));
        const heard = (): void => {
          clearTimeout(watch);
          watch = setTimeout(silent, SILENCE);
        };
        const silent = (): void => {
          if (isHeard) endAndRetry('no news for 5 s', 0);
          else endAndRetry('no answer in 5 s. Does a proxy buffer the stream?');
        };
        heard();
        for (const event of EVENTS) {
          opened.addEventListener(event, ({ data }: MessageEvent<string>) => {
            isHeard = true;
            heard();
            isLive(true);
            take(event, JSON.parse(data) as never);
          });
        }
        opened.addEventListener('end', ({ data }: MessageEvent<string>) => endAndRetry((JSON.parse(data) as Messages['end']).reason));
        // The browser connects again by itself, unless the answer was an error.
        opened.addEventListener('error', () => {
          if (opened.readyState !== EventSource.CLOSED) return isLive(false, 'the connection is lost');
          endAndRetry('the server refuses the stream');
          // The browser does not say why.
          ask(`${base}/events`, undefined, true).catch(({ message }: Error) => isLive(false, message));
        });
      };
      connect();
      return end;
    },
    key: ({ store, key }) => ask(`${base}/key?${String(new URLSearchParams({ store, key }))}`),
    find: (store, text) => ask(`${base}/find?${String(new URLSearchParams({ store, text }))}`),
    release: (order) => ask(`${base}/release`, order),
    hold: (order) => ask(`${base}/hold`, order),
  };
}

/** @param isStream whether only the status counts. @throws an error whose message can be shown. */
async function ask<T>(url: string, order?: unknown, isStream = false): Promise<T> {
  const headers = { 'x-lock-dashboard': '1', 'content-type': 'application/json' };
  const options =
    order === undefined
      ? { headers, signal: AbortSignal.timeout(LONGEST_ANSWER) }
      : { headers, method: 'POST', body: JSON.stringify(order) };
  const response = await fetch(url, options).catch(() => {
    throw new Error(`The server does not answer${order === undefined ? '.' : ': it is unknown whether anything was done.'}`);
  });
  if (isStream && response.ok) return response.body?.cancel() as T;
  const text = await response.text();
  const answer = parsed(text);
  if (response.ok) return answer as T;
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
