import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { configError, LockConfigError } from '../../core/model/errors.js';

/**
 * Name of the method by which a class defines the value that identifies its instances in keys, like `hashCode` in Java. It returns a string,
 * number, bigint or boolean, or arrays and records of these. Instances that return equal values share their lock, also across classes.
 *
 * @example class Product { [LOCK_KEY]() { return this.sku; } }
 */
export const LOCK_KEY: unique symbol = Symbol.for('nestjs-distributed-lock:key');

const MAX_DEPTH = 1_000;
/** Fields of objects and elements of lists, in all arguments together. The walk is synchronous: so many block the event loop for some 100 ms. */
const MAX_FIELDS = 100_000;
const MAX_TEXT = 2_000_000; // Characters of strings and of the names of fields.
const MAX_SHOWN = 120;
const IN_PROGRESS = '';
// A longer form is replaced by its hash. Otherwise an object with two references to the same child would double the text at each level.
const MAX_FORM = 100;
const ADVICE = "lock by a part of it (paramLock: ['0.id']), by a key function, or give its class a [LOCK_KEY]() method";

/**
 * The text of a value: the same for two values if and only if they are equal. Every form begins with its own character and is quoted, closed
 * or of fixed length, so that forms put side by side cannot be confused.
 *
 * @param args the arguments of the call
 * @param steps where to begin, such as `['0', 'user', 'id']`; none: the form of the whole list
 * @throws {LockConfigError} when something has no stable form, or there is too much of it; the message names the argument, and the path in it
 */
export function canonicalForm(args: readonly unknown[], steps: readonly string[] = []): string {
  const walk = new Walk();
  try {
    return walk.from(args, steps);
  } catch (cause) {
    if (cause instanceof LockConfigError) throw cause;
    throw walk.refusal(`cannot be read (${cause instanceof Error ? cause.message : typeof cause})`, cause);
  }
}

/** SHA-256 of a text or of bytes, in hex digits. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

class Walk {
  // Not reset when something throws, so that the error can name the place.
  readonly #path: string[] = [];
  readonly #forms = new Map<object, string>();
  #fieldsLeft = MAX_FIELDS;
  #textLeft = MAX_TEXT;

  from(args: readonly unknown[], steps: readonly string[]): string {
    let value: unknown = args;
    for (const step of steps) {
      this.#path.push(step);
      value = readStep(value, step);
      if (value === undefined) throw configError('KEY', `${this.#spot()} leads nowhere: paramLock names a value that is not there`);
    }
    return this.#form(value);
  }

  refusal(what: string, cause?: unknown): LockConfigError {
    return configError('KEY', `${this.#spot()} ${what}, which has no stable form; ${ADVICE}`, { cause });
  }

  #spot(): string {
    const [index, ...steps] = this.#path;
    const inside = steps.map((step) => (/^[\w$]+(\(\))?$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`)).join('');
    return `argument ${index}${inside && ' at '}${inside.length > MAX_SHOWN ? `${inside.slice(0, MAX_SHOWN)}…` : inside}`;
  }

  #form(value: unknown): string {
    if (value === undefined) return 'u';
    if (value === null) return 'n';
    if (typeof value === 'boolean') return value ? 't' : 'f';
    if (typeof value === 'number') return `${value};`; // -0 prints as 0
    if (typeof value === 'bigint') return `${value}n;`;
    if (typeof value === 'string') this.#count(0, value.length);
    if (typeof value === 'string') return JSON.stringify(value); // escapes lone surrogates: in UTF-8 they would all be U+FFFD
    if (typeof value === 'symbol') throw this.refusal('is a symbol');
    const known = this.#forms.get(value);
    if (known === IN_PROGRESS) throw this.refusal('is a cycle');
    if (known !== undefined) return known;
    if (this.#path.length > MAX_DEPTH) throw this.refusal(`is nested more than ${MAX_DEPTH} levels deep`);
    this.#forms.set(value, IN_PROGRESS);
    const text = this.#object(value);
    const form = text.length > MAX_FORM ? `#${sha256(text)}` : text;
    this.#forms.set(value, form);
    return form;
  }

  #object(value: object & { [LOCK_KEY]?(): unknown; toJSON?(): unknown }): string {
    if (LOCK_KEY in value) return `K${this.#stated('LOCK_KEY()', () => value[LOCK_KEY]?.() ?? undefined)}`;
    // Brand checks, not `instanceof`: a value may come from another realm (vm, Jest).
    if (Array.isArray(value)) return `[${value.length}${this.#fields(value)}`;
    if (types.isMap(value)) return `M[${this.#unordered(value)}]${this.#fields(value)}`;
    if (types.isSet(value)) return `S[${this.#unordered(value)}]${this.#fields(value)}`;
    if (types.isRegExp(value)) return `R${JSON.stringify([value.source, value.flags])}${this.#fields(value)}`;
    if (types.isDate(value) && !Number.isNaN(value.getTime())) return `D${value.getTime()};${this.#fields(value)}`;
    if (types.isBoxedPrimitive(value)) return `O${this.#stated('valueOf()', () => value.valueOf())}`;
    if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
      if (isWide(value)) this.#count(value.length);
      return bytes(value);
    }
    const unstable = unstableKind(value);
    if (unstable !== undefined) throw this.refusal(`is ${unstable}`);
    if (typeof value.toJSON === 'function') return `J${this.#stated('toJSON()', () => value.toJSON?.())}`;
    const hidden = hiddenState(value);
    if (hidden !== undefined) throw this.refusal(hidden);
    return this.#fields(value);
  }

  /** Own enumerable fields by name. A field that is missing, one that is undefined and a hole in an array are the same. */
  #fields(value: object): string {
    let text = '{';
    const keys = Object.keys(value);
    this.#count(keys.length, Array.isArray(value) ? 0 : keys.join('').length);
    for (const key of keys.sort()) {
      const field = this.#within(key, () => (value as Record<string, unknown>)[key]);
      if (field !== 'u') text += JSON.stringify(key) + field;
    }
    return `${text}}`;
  }

  #unordered(entries: Iterable<unknown>): string {
    const all = [...entries];
    this.#count(all.length);
    const forms = all.map((entry, index) => this.#within(String(index), () => entry));
    return forms.sort().join('');
  }

  /** Not the list of all arguments, which has no index to name. */
  #count(fields: number, characters = 0): void {
    if (this.#path.length > 0) this.#fieldsLeft -= fields;
    this.#textLeft -= characters;
    if (Math.min(this.#fieldsLeft, this.#textLeft) >= 0) return;
    const reason = `the key would be made of more than ${MAX_FIELDS} fields or ${MAX_TEXT} characters, which blocks the process`;
    throw configError('KEY', `argument ${this.#path[0]} is too large: ${reason}; ${ADVICE}`);
  }

  /** The value that an object returns for itself. `undefined` is refused: all objects with a forgotten `return` or an unset id would share a key. */
  #stated(method: string, read: () => unknown): string {
    const form = this.#within(method, read);
    if (form === 'u') throw this.refusal(`has a ${method} that returned nothing`);
    return form;
  }

  #within(step: string, read: () => unknown): string {
    this.#path.push(step);
    const form = this.#form(read());
    this.#path.pop();
    return form;
  }
}

function readStep(value: unknown, step: string): unknown {
  if (value === null || value === undefined) return undefined;
  // Properties that every object inherits (`0.constructor`, `0.__proto__`) do not identify this one.
  return step in Object.prototype && !Object.hasOwn(value, step) ? undefined : (value as Record<string, unknown>)[step];
}

function bytes(value: ArrayBufferView | ArrayBufferLike): string {
  const kind = JSON.stringify(Object.prototype.toString.call(value)); // of a Buffer: [object Uint8Array]
  if (!ArrayBuffer.isView(value)) return `B${kind}#${sha256(new Uint8Array(value))}`;
  if (isWide(value)) return `B${kind}"${value.join()}"`;
  return `B${kind}#${sha256(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))}`;
}

/** Wider elements are written as numbers, because their bytes depend on the machine and differ for -0 and 0. */
function isWide(value: object): value is Float64Array {
  return types.isTypedArray(value) && !types.isUint8Array(value);
}

function unstableKind(value: object): string | undefined {
  const { then, pipe, getReader } = value as Record<string, unknown>;
  if (typeof value === 'function') return 'a function';
  if (typeof then === 'function') return 'a promise';
  if (typeof pipe === 'function' || typeof getReader === 'function') return 'a stream or a request';
  if (types.isDate(value)) return 'an invalid Date';
  if (types.isNativeError(value)) return 'an error'; // its message is not enumerable, and a toJSON(), if there is one, often contains the stack
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return /^Weak|Generator$|Iterator$/.test(tag) ? `of type ${tag}` : undefined;
}

/** The reason why two objects with the same fields may still differ. */
function hiddenState(value: object): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain) return Object.keys(value).length > 0 ? undefined : `is of class ${value.constructor.name} and without fields of its own`;
  // Methods named by a symbol are hooks (of util.inspect, of iteration…) and no data.
  const isData = (key: symbol) =>
    ({}).propertyIsEnumerable.call(value, key) && typeof (value as Record<symbol, unknown>)[key] !== 'function';
  return Object.getOwnPropertySymbols(value).some(isData) ? 'has a field named by a symbol' : undefined;
}
