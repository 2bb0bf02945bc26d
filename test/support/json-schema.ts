/** What is used of JSON Schema in schema/cli.json. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  format?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: false;
  items?: Schema;
  oneOf?: Schema[];
  title?: string;
  description?: string;
  $schema?: string;
  $id?: string;
}

const KNOWN = new Set(
  '$ref $defs type const enum format properties required additionalProperties items oneOf title description $schema $id'.split(' '),
);

/** What is wrong with a value, as `path: problem`; empty: nothing. */
export function problemsOf(value: unknown, schema: Schema, root: Schema = schema, path = '$'): string[] {
  const unknown = Object.keys(schema).filter((word) => !KNOWN.has(word));
  if (unknown.length > 0) throw new Error(`This checker does not know ${unknown.join(', ')}`);
  if (schema.$ref !== undefined) {
    const target = root.$defs?.[schema.$ref.replace('#/$defs/', '')];
    if (!target) throw new Error(`No ${schema.$ref}`);
    return problemsOf(value, target, root, path);
  }
  if (schema.oneOf) {
    const all = schema.oneOf.map((each) => problemsOf(value, each, root, path));
    const fitting = all.filter((problems) => problems.length === 0).length;
    return fitting === 1 ? [] : [`${path}: fits ${fitting} of ${all.length} (${all.map((problems) => problems.join('; ')).join(' | ')})`];
  }
  const type = typeOf(value);
  const types = [schema.type ?? type].flat();
  if (!types.includes(type) && !(type === 'integer' && types.includes('number'))) return [`${path}: ${type}, not ${types.join(' or ')}`];
  if ('const' in schema && value !== schema.const) return [`${path}: not ${String(schema.const)}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${path}: ${String(value)} is none of ${schema.enum.join(', ')}`];
  if (schema.format === 'date-time' && typeof value === 'string' && new Date(value).toISOString() !== value) return [`${path}: no date`];
  if (Array.isArray(value)) return value.flatMap((each, index) => problemsOf(each, schema.items ?? {}, root, `${path}[${index}]`));
  if (type !== 'object') return [];
  const { properties = {}, required = [], additionalProperties } = schema;
  const fields = value as Record<string, unknown>;
  const missing = required.filter((name) => !(name in fields)).map((name) => `${path}: no ${name}`);
  const extra = additionalProperties === false ? Object.keys(fields).filter((name) => !(name in properties)) : [];
  const inner = Object.entries(properties).filter(([name]) => name in fields);
  return [
    ...missing,
    ...extra.map((name) => `${path}: ${name} is not in the schema`),
    ...inner.flatMap(([name, each]) => problemsOf(fields[name], each, root, `${path}.${name}`)),
  ];
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}
