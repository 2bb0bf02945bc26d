import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  HoldOrder,
  KeyAnswer,
  Messages,
  ReleaseAnswer,
  ReleaseOrder,
  Row,
  RowName,
} from '../../../lib/dashboard/dashboard.protocol.js';
import { page, scriptHash, styleHash } from '../../../lib/dashboard/page.generated.js';
import { hello, keyAnswer } from './rows.js';

const CSP = `default-src 'none'; script-src '${scriptHash}'; style-src '${styleHash}'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** How it answers; what is left out is as usual. */
export interface Play {
  hello?: Partial<Messages['hello']>;
  rows?: Row[];
  key?: (name: RowName) => Partial<KeyAnswer>;
  release?: (order: ReleaseOrder) => { status?: number; body: ReleaseAnswer | { message: string } };
}

/** A server of the page that plays what a test wants, below a prefix. */
export interface PageServer {
  readonly url: string;
  readonly rows: Map<string, Row>;
  readonly streams: ReadonlySet<ServerResponse>;
  readonly releases: ReleaseOrder[];
  readonly holds: HoldOrder[];
  /** Requests that lack the header of the page. */
  readonly forged: string[];
  say<Event extends keyof Messages>(event: Event, message: Messages[Event]): void;
  /** Changes rows here and on all pages. */
  put(...rows: Row[]): void;
  close(): Promise<void>;
}

export async function startPageServer(play: Play = {}): Promise<PageServer> {
  const rows = new Map((play.rows ?? []).map((row) => [row.key, row]));
  const streams = new Set<ServerResponse>();
  const [releases, holds, forged]: [ReleaseOrder[], HoldOrder[], string[]] = [[], [], []];
  const send = (to: ServerResponse, event: string, message: unknown): void =>
    void to.write(`event: ${event}\ndata: ${JSON.stringify(message)}\n\n`);
  const json = (to: ServerResponse, body: unknown, status = 200): void => {
    to.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };

  const answers: Record<string, (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>> = {
    'GET /ops/locks': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': CSP }).end(page);
    },
    'GET /ops/locks/events': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      streams.add(response.on('close', () => streams.delete(response)));
      send(response, 'hello', hello({ now: Date.now(), ...play.hello }));
      const all = [...rows.values()];
      for (let start = 0; start === 0 || start < all.length; start += 500)
        send(response, 'rows', { isFirst: start === 0, rows: all.slice(start, start + 500) });
    },
    'GET /ops/locks/key': (_request, response, query) => {
      const name = { store: query.get('store') ?? '', key: query.get('key') ?? '' };
      const row = rows.get(name.key) ?? { ...name, kind: 'free', holder: null, holders: 0, waiters: 0, waitingSince: null };
      json(response, keyAnswer(row, { at: Date.now(), ...play.key?.(name) }));
    },
    'POST /ops/locks/release': async (request, response) => {
      const order = (await bodyOf(request)) as ReleaseOrder;
      releases.push(order);
      const forced = order.keys.map(({ key, owner }) => ({ key, outcome: 'forced', holder: owner }) as const);
      const { status, body } = play.release?.(order) ?? { body: forced };
      json(response, body, status);
    },
    'POST /ops/locks/hold': async (request, response) => {
      holds.push((await bodyOf(request)) as HoldOrder);
      json(response, { isHeld: !rows.has(holds.at(-1)?.key ?? '') });
    },
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://page');
    const asked = `${request.method} ${pathname.replace(/\/$/, '')}`;
    const answer = answers[asked];
    if (/(key|release|hold)$/.test(asked) && request.headers['x-lock-dashboard'] !== '1') forged.push(asked);
    if (!answer) response.writeHead(404).end();
    else void answer(request, response, searchParams);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const say: PageServer['say'] = (event, message) => streams.forEach((stream) => send(stream, event, message));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/locks`,
    rows,
    streams,
    releases,
    holds,
    forged,
    say,
    put(...these) {
      for (const row of these) rows.set(row.key, row);
      say('delta', { put: these, drop: [] });
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  if (request.headers['content-type'] !== 'application/json') throw new Error('no JSON');
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part as string;
  return JSON.parse(text);
}
