import type { IncomingMessage } from 'node:http';

const LONGEST_BODY = 65_536;

/** An answer that is an error, with the status of HTTP. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** @throws {Refused} */
export function checkReason(reason: unknown): asserts reason is string {
  if (typeof reason !== 'string' || reason.trim().length < 3 || reason.length > 200) {
    throw new Refused(422, '"reason" must be a text of 3 to 200 characters.');
  }
}

/** @throws {Refused} */
export function checkNumber(name: string, value: unknown, most: number, least = 0): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
    throw new Refused(422, `"${name}" must be milliseconds from ${least} to ${most}.`);
  }
}

/** @throws {Refused} */
export async function readJson(body: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of body.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > LONGEST_BODY) throw new Refused(413, 'The body is too long.');
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused(400, 'The body must be JSON.');
  }
}
