import type { IncomingHttpHeaders } from 'node:http';

/**
 * Why a request may come from a page of another site, which a browser sends with the credentials of the operator; `undefined`: it does not. A header of
 * our own is not enough: an app may permit all origins to send any header.
 *
 * @param origins other origins of the page itself.
 */
export function forgeryIn(headers: IncomingHttpHeaders, method: string, origins: readonly string[] = []): string | undefined {
  const { origin, host, 'sec-fetch-site': site, 'content-type': type = '' } = headers;
  const isOwn = origin !== undefined && (origins.includes(origin) || hostOf(origin) === host);
  if (site !== undefined ? site !== 'same-origin' && !isOwn : origin !== undefined && !isOwn) return 'The request is from another site.';
  if (method !== 'POST') return undefined;
  if (headers['x-lock-dashboard'] !== '1') return 'The header x-lock-dashboard is missing.';
  return /^application\/json(;|$)/i.test(type) ? undefined : 'The body must be JSON.';
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}
