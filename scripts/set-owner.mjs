// Puts the owner of the repository, a user or an organisation of GitHub, into package.json and the rules for Prometheus: node scripts/set-owner.mjs <name>
import { readFileSync, writeFileSync } from 'node:fs';

const [owner] = process.argv.slice(2);
if (!/^[a-z\d]+(-[a-z\d]+)*$/i.test(owner ?? '')) throw new Error('Usage: node scripts/set-owner.mjs <user or organisation>');
const file = new URL('../package.json', import.meta.url);
const manifest = JSON.parse(readFileSync(file, 'utf8'));
delete manifest['//'];
const text = JSON.stringify({ ...manifest, author: owner }, undefined, 2);
const named = (given) => given.replaceAll('github.com/OWNER/', `github.com/${owner}/`);
writeFileSync(file, `${named(text)}\n`);
const rules = ['alerts.yml', 'alerts.test.yml'].map((name) => new URL(`../docs/grafana/${name}`, import.meta.url));
for (const each of rules) writeFileSync(each, named(readFileSync(each, 'utf8')));
