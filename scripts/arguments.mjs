import { parseArgs } from 'node:util';

/**
 * The options of a program, by their names as on the command line. `--help`, and with a message whatever is wrong, prints the usage and ends the process.
 *
 * @param {string} usage
 * @param {object} known
 * @param {Record<string, number | undefined>} [known.numbers] whole numbers of at least 1, and their defaults
 * @param {Record<string, string | undefined>} [known.texts] texts, and their defaults
 * @param {string[]} [known.flags]
 * @param {boolean} [known.allowPositionals]
 * @param check throws for what is wrong, and returns what the program needs
 */
export function readArguments(usage, { numbers = {}, texts = {}, flags = [], allowPositionals = false }, check = (values) => values) {
  const text = Object.fromEntries(Object.keys({ ...numbers, ...texts }).map((name) => [name, { type: 'string' }]));
  const flag = Object.fromEntries([...flags, 'help'].map((name) => [name, { type: 'boolean', default: false }]));
  try {
    const { values, positionals } = parseArgs({ options: { ...text, ...flag }, allowPositionals });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const given = Object.entries(numbers).map(([name, fallback]) => [name, name in values ? wholeNumber(name, values[name]) : fallback]);
    return check({ ...texts, ...values, ...Object.fromEntries(given) }, positionals);
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    return process.exit(1);
  }
}

function wholeNumber(name, value) {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`--${name} must be a whole number of at least 1, not ${value}.`);
  return Number(value);
}
