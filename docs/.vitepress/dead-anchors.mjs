// Links of the built site to headings that are not there. VitePress finds those to pages only.
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';

/**
 * @param {string} folder of the site
 * @param {string} base of its paths
 */
export function deadAnchorsIn(folder, base) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.html'));
  const pages = new Map(files.map((file) => [file.replace(/\.html$/, ''), readFileSync(posix.join(folder, file), 'utf8')]));
  const anchors = new Map([...pages].map(([page, html]) => [page, new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]));
  return [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/<a [^>]*?href="(?!\w+:)([^"#?]*)#([^"]+)"/g)]
      .filter(([, path, anchor]) => {
        const target = path === '' ? page : posix.relative(base, posix.resolve(base, posix.dirname(page), path)).replace(/\.html$/, '');
        return !anchors.get(target)?.has(decodeURIComponent(anchor));
      })
      .map(([, path, anchor]) => `${page}: ${path}#${anchor}`),
  );
}
