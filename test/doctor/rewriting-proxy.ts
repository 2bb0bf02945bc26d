import { connect, createServer, type AddressInfo, type NetConnectOpts, type Socket } from 'node:net';
import { endOfFrame } from '../support/resp.js';

/** @param request its words. Returns what the client gets in place of the reply. */
export type Rewrite = (request: readonly string[], reply: string) => string;

export interface RewritingProxy {
  readonly connection: { readonly host: string; readonly port: number };
  close(): void;
}

/** A proxy before Redis servers that changes what they answer. @param targetOf the server of the n-th connection, from 0. */
export async function startRewritingProxy(
  targetOf: (index: number) => NetConnectOpts,
  rewrite: Rewrite = (_, reply) => reply,
): Promise<RewritingProxy> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const upstream = connect(targetOf(count++));
    const requests: string[][] = [];
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
    }
    frames(client, (frame) => {
      requests.push(wordsOf(frame));
      upstream.write(frame);
    });
    frames(upstream, (frame) => client.write(Buffer.from(rewrite(requests.shift() ?? [], frame.toString('latin1')), 'latin1')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    connection: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Changes the text of a reply to one command. */
export function rewriting(command: string, change: (text: string) => string): Rewrite {
  return ([name], reply) => {
    if (name?.toUpperCase() !== command) return reply;
    const text = change(reply.slice(reply.indexOf('\r\n') + 2, -2));
    return `$${text.length}\r\n${text}\r\n`;
  };
}

/** The server's clock, as if it had moved. @param moved milliseconds by which it is ahead. */
export function clockMovedBy(moved: () => number): Rewrite {
  return ([name], reply) => {
    if (name?.toUpperCase() !== 'TIME') return reply;
    const [seconds, microseconds] = [...reply.matchAll(/\r\n(\d+)(?=\r\n)/g)].map(([, part]) => Number(part)) as [number, number];
    const time = seconds * 1_000_000 + microseconds + Math.round(moved() * 1000);
    const parts = [Math.floor(time / 1_000_000), time % 1_000_000].map(String);
    return `*2\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;
  };
}

function frames(socket: Socket, got: (frame: Buffer) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  socket.on('data', (more: Buffer) => {
    bytes = Buffer.concat([bytes, more]);
    for (let end = endOfFrame(bytes); bytes.length > 0 && end > 0; end = bytes.length > 0 ? endOfFrame(bytes) : -1) {
      got(bytes.subarray(0, end));
      bytes = bytes.subarray(end);
    }
  });
}

function wordsOf(frame: Buffer): string[] {
  return [...frame.toString('latin1').matchAll(/\$\d+\r\n(.*?)\r\n/gs)].map(([, word]) => word!);
}
