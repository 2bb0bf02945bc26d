import { type ExecutionContext, UnauthorizedException } from '@nestjs/common';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { checkOptions, type Checks } from '../core/model/check-options.js';

const isText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? undefined : 'a string that is not empty';
const CHECKS: Checks = { user: isText, password: isText };

/**
 * An `authorize` for {@link DistributedLockDashboardModule}: one user who may do everything. Browsers send it with each request of the page. Use it over
 * TLS only.
 *
 * @throws {LockConfigError} if the user or the password is missing.
 */
export function basicAuth(options: {
  readonly user: string;
  readonly password: string;
}): (action: string, context: ExecutionContext) => { by: string } {
  for (const name of Object.keys(CHECKS)) checkOptions(options ?? null, 'basicAuth', CHECKS, name);
  const { user, password } = options;
  const expected = digestOf(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`);
  return (_action, context) => {
    const http = context.switchToHttp();
    const { authorization = '' } = http.getRequest<{ headers: IncomingHttpHeaders }>().headers;
    if (timingSafeEqual(digestOf(authorization), expected)) return { by: user };
    http.getResponse<{ header(name: string, value: string): unknown }>().header('www-authenticate', 'Basic realm="locks", charset="UTF-8"');
    throw new UnauthorizedException();
  };
}

/** Digests have the same length, whatever they are of. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
