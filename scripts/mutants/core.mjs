// Of the engine: deadlines, hand-overs, contexts.
const multi = 'test/stores/memory.multi-lock.spec.ts';
const deadlines = 'test/primitives/deadlines.spec.ts';
const queue = 'lib/core/local-queue.ts';

export const CORE_MUTANTS = [
  // Deadlines
  {
    guarantee: 'G9',
    what: 'the look at a holder of the process outlives it',
    file: queue,
    from: 'this.holder = undefined;\n    this.lookout.end();',
    to: 'this.holder = undefined;',
    spec: deadlines,
    test: 'passed the key on to another one',
  },
  {
    guarantee: 'G9',
    what: 'a waiter whose patience is over waits for the store for as long as that takes',
    file: queue,
    from: 'waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, this.reasonAtTheEnd(waiter)));',
    to: '',
    spec: deadlines,
    test: 'a store that takes',
  },
  {
    guarantee: 'G9',
    what: 'a store that does not answer the last try counts as contention',
    file: queue,
    from: 'if (!isKnown || (asked?.silence ?? 0) >= this.runtime.requestTimeout) return unanswered(key);',
    to: 'if (!isKnown) return unanswered(key);',
    spec: deadlines,
    test: 'got no answer is a StoreError',
  },
  {
    guarantee: 'G9',
    what: 'a wait for a latch lasts as long as its last look',
    file: 'lib/core/latch-watch.ts',
    from: 'waiter.grant(this.runtime.requestTimeout, () => this.remove(waiter, unanswered(this.key)));',
    to: '',
    spec: deadlines,
    test: 'wait for a latch',
  },
  {
    guarantee: 'G9',
    what: 'a multi-lock waits for one requestTimeout a key',
    file: 'lib/primitives/multi-call.ts',
    from: 'if (deadline < Infinity) this.endAt(deadline + requestTimeout);',
    to: '',
    spec: deadlines,
    test: 'one of several keys at the end',
  },
  {
    guarantee: 'G9',
    what: 'an aborted multi-lock waits until what it holds is given back',
    file: 'lib/primitives/multi-call.ts',
    from: 'if (!signal.aborted) await untilAborted(released, signal);',
    to: 'void [signal, untilAborted];\n    await released;',
    spec: deadlines,
    test: 'for several keys at once',
  },
  {
    guarantee: 'G7',
    what: 'a multi-lock is refused before what it got is given back',
    file: 'lib/primitives/multi-call.ts',
    from: 'if (!signal.aborted) await untilAborted(released, signal);',
    to: 'void [released, signal, untilAborted];',
    spec: multi,
    test: 'free for the next one',
  },
];
