import type { Messages } from '../../lib/dashboard/dashboard.protocol.js';
import { eventually } from '../support/eventually.js';

type Message = { [E in keyof Messages]: { readonly event: E; readonly data: Messages[E] } }[keyof Messages];

/** A page that is open, without a browser: what the stream `events` has sent. It is closed after the test. */
export interface Opened {
  readonly status: number;
  readonly headers: Headers;
  readonly messages: readonly Message[];
  readonly isOver: boolean;
  /** Resolves to the first message of this name that is as wanted. */
  message<E extends keyof Messages>(event: E, isWanted?: (data: Messages[E]) => boolean): Promise<Messages[E]>;
  close(): void;
}

const opened: Opened[] = [];
afterEach(() => {
  for (const page of opened.splice(0)) page.close();
});

export async function openStream(url: string, headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' }): Promise<Opened> {
  const end = new AbortController();
  const response = await fetch(url, { headers, signal: end.signal });
  const messages: Message[] = [];
  let isOver = false;
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const bytes of response.body!) {
      text += decoder.decode(bytes as Uint8Array, { stream: true });
      const parts = text.split('\n\n');
      text = parts.pop()!;
      for (const part of parts) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
        if (data !== undefined) messages.push({ event, data: JSON.parse(data) as unknown } as Message);
      }
    }
  };
  void read()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  const page: Opened = {
    status: response.status,
    headers: response.headers,
    messages,
    get isOver() {
      return isOver;
    },
    message: (event, isWanted = () => true) =>
      eventually(() => {
        const found = messages.find((message) => message.event === event && isWanted(message.data as never));
        if (!found) throw new Error(`no such ${event}`);
        return found.data as never;
      }),
    close: () => end.abort(),
  };
  opened.push(page);
  return page;
}
