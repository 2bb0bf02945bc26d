// Puts the owner of the repository, a user or an organisation of GitHub, into package.json: node scripts/set-owner.mjs <name>
import { readFileSync, writeFileSync } from 'node:fs';

const [owner] = process.argv.slice(2);
if (!/^[a-z\d]+(-[a-z\d]+)*$/i.test(owner ?? '')) throw new Error('Usage: node scripts/set-owner.mjs <user or organisation>');
const file = new URL('../package.json', import.meta.url);
const manifest = JSON.parse(readFileSync(file, 'utf8'));
delete manifest['//'];
const text = JSON.stringify({ ...manifest, author: owner }, undefined, 2);
writeFileSync(file, `${text.replaceAll('github.com/OWNER/', `github.com/${owner}/`)}\n`);
