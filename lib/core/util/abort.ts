type Callback = () => void;

const listeners = new WeakMap<AbortSignal, Set<Callback>>();

/**
 * Calls back once when the signal aborts; the returned function forgets the callback. All callers that share a signal share one listener, because
 * Node warns of a leak at the eleventh.
 */
export function onAbort(signal: AbortSignal, callback: Callback): () => void {
  const callbacks = listeners.get(signal) ?? listenTo(signal);
  callbacks.add(callback);
  return () => {
    if (callbacks.delete(callback) && callbacks.size === 0) forget(signal);
  };
}

/** The promise's value, or `undefined` as soon as the signal aborts. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => resolve(undefined));
    promise.then(resolve, reject).finally(forget);
  });
}

function listenTo(signal: AbortSignal): Set<Callback> {
  const callbacks = new Set<Callback>();
  listeners.set(signal, callbacks);
  signal.addEventListener('abort', notify);
  return callbacks;
}

function forget(signal: AbortSignal): void {
  listeners.delete(signal);
  signal.removeEventListener('abort', notify);
}

function notify(this: AbortSignal): void {
  const callbacks = listeners.get(this);
  forget(this);
  for (const callback of [...(callbacks ?? [])]) callback();
}
