import type { Observable } from 'rxjs';
import type { OnTimeout, TimeoutContext } from '../../core/model/options.js';

/** The result of a locked method. A synchronous method could not wait for its lock. */
export type LockableResult = PromiseLike<unknown> | Observable<unknown> | AsyncIterable<unknown>;

/** A method that can be locked: it returns a Promise, an Observable or an async iterable. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the one type that every method's parameters fit
export type LockableMethod = (...args: any[]) => LockableResult;

/** The decorator of a static method is given the class, which has a prototype. */
export type InstanceOnly<Target> = Target extends { readonly prototype: unknown; bind: unknown }
  ? 'A static method has no instance that Nest could give a lock to'
  : unknown;

/** The parts of a key that depend on the arguments. */
export type KeyParts = string | number | bigint | readonly (string | number | bigint)[];

/** Builds {@link KeyParts} from the arguments of a method. */
export type KeyFunction<Args extends readonly unknown[]> = (...args: Args) => KeyParts;

/** Where the method is not known, the parameters of a `key` function are `unknown`, or what it declares: parameters of a method may be narrower. */
type UntypedKey = { of(...args: unknown[]): KeyParts }['of'];
export type KeyOf<M extends LockableMethod> = unknown[] extends Parameters<M> ? UntypedKey : KeyFunction<Parameters<M>>;

/** A call that is skipped resolves to `undefined`, an Observable completes, an iterable ends. */
type IsSkippable<T extends LockableMethod> =
  ReturnType<T> extends PromiseLike<infer Result> ? (undefined extends Result ? true : false) : true;

/** The values that a function of `onTimeout` may return in place of the result: anything where the method resolves to nothing, and for Observables and iterables. */
type InPlaceOf<T extends LockableMethod> =
  ReturnType<T> extends PromiseLike<infer Result> ? (void extends Result ? unknown : Result) : unknown;

/** Values of `onTimeout`. Asks a known method only: `LockableResult` is an error where a compiler does not find the types of rxjs (7.1 under `nodenext`). */
export type OnTimeoutOf<M extends LockableMethod> =
  unknown[] extends Parameters<M>
    ? OnTimeout
    : 'throw' | (IsSkippable<M> extends true ? 'skip' : never) | ((context: TimeoutContext) => InPlaceOf<M> | PromiseLike<InPlaceOf<M>>);

/** Where the method is not known yet, the literals in a function are widened. So only kinds of values are compared. */
type KindOf<Value> = Value extends string
  ? string
  : Value extends number
    ? number
    : Value extends boolean
      ? boolean
      : Value extends object
        ? object
        : Value;

/** `never`, unless a function of `onTimeout` gives a result that the method does not have. */
type Misfit<On, T extends LockableMethod> = On extends (...args: never[]) => infer Given
  ? unknown extends Given
    ? never
    : [KindOf<Awaited<Given>>] extends [KindOf<InPlaceOf<T>>]
      ? never
      : On
  : never;

/** The paths of `paramLock` for parameters of these types: `'0'`, `'0.id'`. Rest parameters and paths of more than two properties are not checked. */
export type ParamPath<Args extends readonly unknown[]> = number extends Args['length']
  ? string
  : { [Index in keyof Args & `${number}`]: Index | `${Index}${PathIn<Args[Index], 2>}` }[keyof Args & `${number}`];

export type PathOf<M extends LockableMethod> = ParamPath<Parameters<M>>;

type AnyFunction = (...args: never[]) => unknown;
type Leaf = string | number | bigint | boolean | symbol | null | undefined | Date | AnyFunction;

/** `any`, `unknown` and `object` may have any property. */
type PathIn<Value, Depth extends 0 | 1 | 2> = unknown extends Value
  ? `.${string}`
  : object extends Value
    ? `.${string}`
    : PathInEach<Value, Depth>;

/** Distributes over a union. */
type PathInEach<Value, Depth extends 0 | 1 | 2> = Value extends Leaf
  ? never
  : Depth extends 0
    ? `.${string}`
    : Value extends readonly (infer Item)[]
      ? Step<number, Item, Depth>
      : { [Name in keyof Value & (string | number)]: Step<Name, Value[Name], Depth> }[keyof Value & (string | number)];

/** A path must not lead to a method. */
type Step<Name extends string | number, Value, Depth extends 0 | 1 | 2> = Value extends AnyFunction
  ? never
  : `.${Name}` | `.${Name}${PathIn<Value, Shallower<Depth>>}`;

type Shallower<Depth extends 0 | 1 | 2> = Depth extends 2 ? 1 : 0;

/**
 * `unknown` if the method can be locked with these options. Otherwise a string type with the reason, which the compiler shows in its error.
 *
 * @typeParam T the method; M the type that the decorator was given for it, if any; Key, Path, On its own `key`, `paramLock` and `onTimeout`
 */
export type Lockable<T, M extends LockableMethod, Key, Path extends string, On> = T extends LockableMethod
  ? unknown[] extends Parameters<M>
    ? [On] extends ['skip']
      ? ReturnType<T> extends PromiseLike<infer Result>
        ? undefined extends Result
          ? Fitting<Parameters<T>, Key, Path>
          : "onTimeout: 'skip' resolves to undefined, which the result type of this method does not allow"
        : Fitting<Parameters<T>, Key, Path>
      : IsNever<Misfit<On, T>> extends false
        ? 'onTimeout: its result is not of the result type of this method'
        : Fitting<Parameters<T>, Key, Path>
    : IsKeyOf<KeyFunction<Parameters<M>>, Parameters<T>> extends false
      ? 'The type given to the decorator is not the type of this method'
      : unknown
  : 'A locked method must return a Promise, an Observable or an async iterable: make it async';

// The compiler cannot decide these for a type parameter of the class. Only where they are false is there an error.
type IsNever<Value> = [Value] extends [never] ? true : false;
type IsKeyOf<Key, Args extends readonly unknown[]> = Key extends KeyFunction<Args> ? true : false;

type Fitting<Args extends readonly unknown[], Key, Path extends string> =
  IsKeyOf<Key, Args> extends false
    ? 'key: its parameters are not those of this method'
    : string extends Path
      ? unknown
      : IsNever<Exclude<Path, ParamPath<Args>>> extends false
        ? `paramLock: "${Exclude<Path, ParamPath<Args>>}" leads nowhere in the parameters of this method`
        : unknown;
