type Row = Record<string, unknown>;

const UPDATE = /^UPDATE \w+ SET (?<sets>.+) WHERE (?<conditions>.+)$/;
const SET = /^(\w+) = \$(\d+)$/;
const CONDITION = /^(\w+) (=|<=) \$(\d+)$/;

/** One table of a database, which understands `UPDATE … SET column = $n, … WHERE column <= $n AND …`, and does what it says. */
export class SqlTable {
  constructor(readonly rows: Row[]) {}

  /** As the clients of PostgreSQL do: `rowCount` tells how many rows were changed. */
  async query(text: string, values: readonly unknown[]): Promise<{ rowCount: number }> {
    const { sets, conditions } = parse(UPDATE, text).groups as { sets: string; conditions: string };
    const valueOf = (number = ''): unknown => {
      if (!(Number(number) in [undefined, ...values])) throw new Error(`There is no value $${number}.`);
      return values[Number(number) - 1];
    };
    const meets = conditions.split(' AND ').map((condition) => {
      const [, column = '', operator = '', number] = parse(CONDITION, condition);
      return (row: Row) => row[column] === valueOf(number) || (operator === '<=' && (row[column] as number) < (valueOf(number) as number));
    });
    const found = this.rows.filter((row) => meets.every((meet) => meet(row)));
    for (const set of sets.split(', ')) {
      const [, column = '', number] = parse(SET, set);
      for (const row of found) row[column] = valueOf(number);
    }
    return { rowCount: found.length };
  }
}

function parse(pattern: RegExp, text: string): RegExpExecArray {
  const match = pattern.exec(text);
  if (!match) throw new Error(`Not understood: ${text}`);
  return match;
}
