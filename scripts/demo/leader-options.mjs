import { parseArgs } from 'node:util';

const NUMBERS = { 'key-timeout': 3000, work: 50 };

const USAGE = `npm run demo:leader -- [options]
  --key-timeout ${NUMBERS['key-timeout']}   milliseconds: the leader's lease
  --work ${NUMBERS.work}            milliseconds that the leader works for each line in the ledger
  --no-build           the library and the sample app are built`;

/** Says what is wrong and ends the process, or what can be said if that is asked. */
export function readLeaderOptions(args) {
  try {
    return read(args);
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    return process.exit(1);
  }
}

function read(args) {
  const text = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, { type: 'string' }]));
  const flags = Object.fromEntries(['no-build', 'help'].map((name) => [name, { type: 'boolean', default: false }]));
  const { values } = parseArgs({ args, options: { ...text, ...flags } });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const number = (name) => {
    const value = String(values[name] ?? NUMBERS[name]);
    if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`--${name} must be a whole number of at least 1, not ${value}.`);
    return Number(value);
  };
  return { keyTimeout: number('key-timeout'), work: number('work'), build: !values['no-build'] };
}
