import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

const PAGE = '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center>nginx</center>\r\n</body>\r\n</html>\r\n';

/** A balancer before HTTP servers, as nginx is. It goes on to the next one when one breaks off, or leaves a client without an answer. */
export async function startBalancer(targets: readonly string[]): Promise<Balancer> {
  const balancer = new Balancer(targets);
  await balancer.listen();
  return balancer;
}

export class Balancer {
  /** How many requests were answered with a page since the start. */
  pages = 0;
  private isDown = false;
  private current = 0;
  private readonly agent = new http.Agent({ keepAlive: true });
  private readonly open = new Set<http.ServerResponse>();
  private readonly server = http.createServer((request, response) => this.pass(request, response));

  constructor(private readonly targets: readonly string[]) {}

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  /** All requests are answered with a page, also those under way. Each second one is done all the same. Streams break. */
  down(): void {
    this.isDown = true;
    for (const response of this.open) this.refuse(response);
  }

  up(): void {
    this.isDown = false;
  }

  async close(): Promise<void> {
    this.agent.destroy();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private pass(request: http.IncomingMessage, response: http.ServerResponse): void {
    const { isDown } = this;
    const { current } = this;
    const target = this.targets[current]!;
    const next = (): void => {
      if (this.current === current) this.current = (current + 1) % this.targets.length;
    };
    if (isDown) this.refuse(response);
    if (isDown && this.pages % 2 === 0) return void request.resume();
    const { connection: _connection, host: _host, ...headers } = request.headers;
    const sent = http.request(target + request.url!, { method: request.method, headers, agent: this.agent }, (reply) => {
      if (response.headersSent) return void reply.resume();
      response.writeHead(reply.statusCode!, { 'content-type': reply.headers['content-type'] });
      response.flushHeaders();
      reply.on('error', () => response.destroy()).pipe(response);
    });
    sent.on('error', () => {
      next();
      this.refuse(response);
    });
    this.open.add(response);
    response
      .on('error', () => sent.destroy())
      .on('close', () => {
        this.open.delete(response);
        // The client has gone: its watch ends at the server, too.
        if (!response.writableFinished) sent.destroy();
      });
    request.on('error', () => sent.destroy()).pipe(sent);
  }

  private refuse(response: http.ServerResponse): void {
    if (response.headersSent) return void response.destroy();
    this.pages++;
    response.writeHead(502, { 'content-type': 'text/html' }).end(PAGE);
  }
}
