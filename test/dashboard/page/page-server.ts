import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  HoldOrder,
  KeyAnswer,
  PageState,
  ReleaseAnswer,
  ReleaseOrder,
  Row,
  RowName,
} from '../../../lib/dashboard/dashboard.protocol.js';
import { page, scriptHash, styleHash } from '../../../lib/dashboard/page.generated.js';
import { keyAnswer, row, state } from './rows.js';

const CSP = `default-src 'none'; script-src '${scriptHash}'; style-src '${styleHash}'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

const EMBED = 'scripts/embed-page.mjs';
/** The page of the docs site. */
let demo: Buffer | undefined;

/** How it answers; what is left out is as usual. */
export interface Play {
  rows?: Row[];
  state?: Partial<PageState>;
  key?: (name: RowName) => Partial<KeyAnswer>;
  /** It gives no answer to a question for the state. */
  isDeaf?: () => boolean;
  release?: (order: ReleaseOrder) => { status?: number; body: ReleaseAnswer | { message: string } };
}

/** A server of the page that plays what a test wants, below a prefix. */
export async function startPageServer(play: Play = {}) {
  const rows = new Map((play.rows ?? []).map((each) => [each.key, each]));
  const releases: ReleaseOrder[] = [];
  const holds: HoldOrder[] = [];
  /** The searches of its pages, and how often they have asked for the state. */
  const searches: string[] = [];
  /** Requests that lack the header of the page. */
  const forged: string[] = [];
  let said = play.state ?? {};
  const json = (to: ServerResponse, body: unknown, status = 200): void => {
    to.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const html = (to: ServerResponse, body: string | Buffer, headers = {}): void =>
    void to.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(body);

  const answers: Record<string, (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>> = {
    'GET /ops/locks': (_request, response) => html(response, page, { 'content-security-policy': CSP }),
    'GET /ops/locks/demo': (_request, response) => html(response, (demo ??= execFileSync(process.execPath, [EMBED, '--demo']))),
    'GET /ops/locks/state': (_request, response, query) => {
      const text = query.get('q') ?? '';
      searches.push(text);
      if (play.isDeaf?.()) return;
      const found = [...rows.values()].filter((each) => JSON.stringify(each).includes(text));
      json(response, state({ now: Date.now(), rows: found, ...said }));
    },
    'GET /ops/locks/key': (_request, response, query) => {
      const name = { store: query.get('store') ?? '', key: query.get('key') ?? '' };
      const free = row(name.key, { store: name.store, kind: 'free', holder: null, holders: 0 });
      json(response, keyAnswer(rows.get(name.key) ?? free, { at: Date.now(), ...play.key?.(name) }));
    },
    'POST /ops/locks/release': async (request, response) => {
      const order = (await bodyOf(request)) as ReleaseOrder;
      releases.push(order);
      const { status, body } = play.release?.(order) ?? { body: { outcome: 'forced', holder: order.owner } };
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
    if (/(state|key|release|hold)$/.test(asked) && request.headers['x-lock-dashboard'] !== '1') forged.push(asked);
    if (!answer) response.writeHead(404).end();
    else void answer(request, response, searchParams);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/locks`,
    ...{ rows, releases, holds, searches, forged },
    /** Changes what it says from now on. */
    say: (given: Partial<PageState>) => void (said = { ...said, ...given }),
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
