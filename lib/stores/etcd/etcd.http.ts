import type { ClientRequest, IncomingMessage } from 'node:http';

/** Bytes of a reply: 500 rows with some 1,000 waiters each. */
const LONGEST_REPLY = 2 ** 26;
/** Bytes of any other answer. */
const LONGEST_PAGE = 2 ** 16;
/** Characters of a message of a watch: those of many transactions. */
const LONGEST_LINE = 2 ** 24;

/** Whatever comes after this is for who reads the response: an error of the request is one of the response, too. */
export function answerTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => resolve(response.on('error', reject)));
    // A change of the protocol is no response.
    request.on('close', () => reject(new Error('the connection was closed')));
  });
}

/** The text of a response, or its beginning, if it has more than etcd says. */
export async function textIn(response: IncomingMessage): Promise<string> {
  const most = response.statusCode === 200 ? LONGEST_REPLY : LONGEST_PAGE;
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    parts.push(part);
    size += part.length;
    if (size > most) break;
  }
  return Buffer.concat(parts).toString();
}

/** @throws {Error} if a line has no end. */
export async function* linesIn(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const data of response.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = data.split('\n');
    lines[0] = rest + lines[0]!;
    rest = lines.pop()!;
    yield* lines;
    if (rest.length > LONGEST_LINE) throw new Error('a message without an end');
  }
}
