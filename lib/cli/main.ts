#!/usr/bin/env node
import { EXIT } from './failure.js';
import { ndl } from './ndl.js';

const args = process.argv.slice(2);
let fault = '';
const end = (code: number): never => {
  process.stderr.write(fault);
  return process.exit(code || (fault === '' ? EXIT.ok : EXIT.fault));
};
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // A reader that has seen enough, such as `head`, closes the pipe.
  if (code !== 'EPIPE') fault = `The output could not be written: ${message}\n`;
  // The exit code of the others says what they have done.
  if (!['release', 'leader', 'hold', 'run'].includes(args[0] ?? '')) end(EXIT.ok);
});
process.stderr.on('error', () => undefined);
void ndl(args, process).then(async (code) => {
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((resolve) => stream.write('', () => resolve()));
  // Clients of a config file, and sockets that are being closed, would keep the program running.
  end(code);
});
