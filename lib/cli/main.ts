#!/usr/bin/env node
import { EXIT } from './failure.js';
import { ndl } from './ndl.js';

// A reader that has seen enough, such as `head`.
process.stdout.on('error', () => process.exit(EXIT.ok));
process.stderr.on('error', () => undefined);
void ndl(process.argv.slice(2), process).then(async (code) => {
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((resolve) => stream.write('', () => resolve()));
  // Clients of a config file, and sockets that are being closed, would keep the program running.
  process.exit(code);
});
