import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Dashboard, PAGE_HEADERS } from '../dashboard/dashboard.js';
import { page } from '../dashboard/page.generated.js';
import { readJson, Refused } from '../dashboard/refused.js';
import { forgeryIn } from '../dashboard/same-origin.js';
import type { Command } from './command.js';
import { EXIT, usage } from './failure.js';
import { operatorName } from './release.js';

export const ui: Command = {
  words: [],
  summary: 'a page for the browser, on this machine only: what is held, its waiters, and a way to release',
  flags: { port: { type: 'string', help: 'of 127.0.0.1 (any that is free)' } },
  async run({ flags, out, signal, locks }) {
    const dashboard = new Dashboard(new Map([['default', await locks()]]));
    // Other users of this machine do not know it.
    const base = `/${randomBytes(18).toString('base64url')}`;
    const server = createServer((request, response) => {
      answer(dashboard, base, request, response).catch((error: unknown) => {
        const { status, message } = error instanceof Refused ? error : { status: 500, message: String(error) };
        if (response.headersSent) response.destroy();
        else response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).end(message);
      });
    });
    const port = flags.integer('port') ?? 0;
    const listens = new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
    await listens.catch(({ message }: Error) => {
      throw usage(`--port ${port} cannot be used: ${message}`);
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`;
    out.json('ui', { url });
    out.line(`${url}  Ctrl-C ends it.`);
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    server.close();
    server.closeAllConnections();
    return EXIT.ok;
  },
};

async function answer(dashboard: Dashboard, base: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = 'GET', headers, url = '' } = request;
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  const nothing = new Refused(404, 'There is nothing here.');
  if (!pathname.startsWith(base)) throw nothing;
  const path = `${method} ${pathname.slice(base.length).replace(/\/$/, '')}`;
  if (path === 'GET ') return void response.writeHead(200, PAGE_HEADERS).end(page);
  // A name that another site has made an address of this machine.
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(headers.host ?? '')) throw new Refused(403, 'The address must be that of this machine.');
  const forgery = forgeryIn(headers, method);
  if (forgery !== undefined) throw new Refused(403, forgery);
  const by = operatorName();
  const json = (body: unknown): void =>
    void response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body));
  const asked = Object.fromEntries(searchParams);
  if (path === 'GET /state') json(await dashboard.state(asked['store'], asked['q'], { by, mayRelease: true }));
  else if (path === 'GET /key') json(await dashboard.key(asked['store'], asked['key']));
  else if (path === 'POST /release') json(await dashboard.release(await readJson(request), by));
  else if (path === 'POST /hold') json(await dashboard.hold(await readJson(request), by));
  else throw nothing;
}
