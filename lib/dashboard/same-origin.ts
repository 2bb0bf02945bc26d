import type { IncomingHttpHeaders } from 'node:http';

/**
 * Why a request may come from a page of another site, which a browser sends with the credentials of the operator; `undefined`: it does not. A header of
 * our own is not enough: an app may permit all origins to send any header.
 *
 * @param origins other origins of the page itself.
 */
export function forgeryIn(headers: IncomingHttpHeaders, method: string, origins: readonly string[] = []): string | undefined {
  const { origin, referer, 'sec-fetch-site': site, 'content-type': type = '' } = headers;
  const isNamed = origin !== undefined && origins.includes(origin);
  // A browser that does not say where it comes from names the origin of each POST. The page sends no `Referer`, and HTTP/2 has no `Host`.
  const from = origin ?? referer;
  const isOwn =
    site === undefined ? from === undefined || hostOf(from) === (headers.host ?? headers[':authority']) : site === 'same-origin';
  if (!isOwn && !isNamed) return 'The request is from another site.';
  if (headers['x-lock-dashboard'] !== '1') return 'The header x-lock-dashboard is missing.';
  return method !== 'POST' || /^application\/json(;|$)/i.test(type) ? undefined : 'The body must be JSON.';
}

/** `null`: the origin is not an address, such as `'null'`. */
function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host;
  } catch {
    return null;
  }
}
