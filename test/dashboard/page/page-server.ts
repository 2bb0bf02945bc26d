import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  FindAnswer,
  HoldOrder,
  KeyAnswer,
  Messages,
  ReleaseAnswer,
  ReleaseOrder,
  Row,
  RowName,
} from '../../../lib/dashboard/dashboard.protocol.js';
import { page, scriptHash, styleHash } from '../../../lib/dashboard/page.generated.js';
import { hello, keyAnswer, stats } from './rows.js';

const CSP = `default-src 'none'; script-src '${scriptHash}'; style-src '${styleHash}'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

const EMBED = 'scripts/embed-page.mjs';
/** The page of the docs site. */
let demo: Buffer | undefined;

/** How it answers; what is left out is as usual. */
export interface Play {
  hello?: Partial<Messages['hello']>;
  rows?: Row[];
  key?: (name: RowName) => Partial<KeyAnswer>;
  find?: () => FindAnswer;
  /** A question for a key gets no answer. */
  isDeaf?: () => boolean;
  /** Why it refuses the stream. */
  refusal?: () => { status: number; message: string } | undefined;
  /** A proxy holds the stream back. */
  isHeldBack?: () => boolean;
  /** The wire is cut, and nobody says so. */
  isSilent?: () => boolean;
  release?: (order: ReleaseOrder) => { status?: number; body: ReleaseAnswer | { message: string } };
}

/** A server of the page that plays what a test wants, below a prefix. */
export interface PageServer {
  readonly url: string;
  readonly rows: Map<string, Row>;
  readonly streams: ReadonlySet<ServerResponse>;
  readonly releases: ReleaseOrder[];
  readonly holds: HoldOrder[];
  readonly finds: [store: string, text: string][];
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
  const [releases, holds, forged, finds]: [ReleaseOrder[], HoldOrder[], string[], PageServer['finds']] = [[], [], [], []];
  const send = (to: ServerResponse, event: string, message: unknown): void =>
    void to.write(`event: ${event}\ndata: ${JSON.stringify(message)}\n\n`);
  const json = (to: ServerResponse, body: unknown, status = 200): void => {
    to.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };

  let said = stats();
  const say: PageServer['say'] = (event, message) => {
    if (event === 'stats') said = message as Messages['stats'];
    streams.forEach((stream) => send(stream, event, message));
  };

  const answers: Record<string, (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>> = {
    'GET /ops/locks': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': CSP }).end(page);
    },
    'GET /ops/locks/demo': (_request, response) => {
      response
        .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
        .end((demo ??= execFileSync(process.execPath, [EMBED, '--demo'])));
    },
    'GET /ops/locks/events': (_request, response) => {
      const refusal = play.refusal?.();
      if (refusal) return json(response, { message: refusal.message }, refusal.status);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      if (play.isHeldBack?.()) return;
      streams.add(response.on('close', () => streams.delete(response)));
      send(response, 'hello', hello({ now: Date.now(), ...play.hello }));
      const all = [...rows.values()];
      for (let start = 0; start === 0 || start < all.length; start += 500)
        send(response, 'delta', { isFirst: start === 0, put: all.slice(start, start + 500), drop: [] });
      send(response, 'stats', said);
    },
    'GET /ops/locks/key': (_request, response, query) => {
      if (play.isDeaf?.()) return;
      const name = { store: query.get('store') ?? '', key: query.get('key') ?? '' };
      const row = rows.get(name.key) ?? { ...name, kind: 'free', holder: null, holders: 0, waiters: 0, waitingSince: null, waitingIn: [] };
      json(response, keyAnswer(row, { at: Date.now(), ...play.key?.(name) }));
    },
    'GET /ops/locks/find': (_request, response, query) => {
      finds.push([query.get('store') ?? '', query.get('text') ?? '']);
      json(response, play.find?.() ?? { found: 0, isWhole: true });
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
  // The page takes silence for a dead connection.
  const beats = setInterval(() => play.isSilent?.() || say('stats', said), 1_000);
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://page');
    const asked = `${request.method} ${pathname.replace(/\/$/, '')}`;
    const answer = answers[asked];
    if (/(key|find|release|hold)$/.test(asked) && request.headers['x-lock-dashboard'] !== '1') forged.push(asked);
    if (!answer) response.writeHead(404).end();
    else void answer(request, response, searchParams);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/locks`,
    rows,
    streams,
    releases,
    holds,
    finds,
    forged,
    say,
    put(...these) {
      for (const row of these) rows.set(row.key, row);
      say('delta', { put: these, drop: [] });
    },
    async close() {
      clearInterval(beats);
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
