import { LockEventEmitter } from '../../lib/core/model/events.js';
import type { LockLogger } from '../../lib/core/model/lock-log.js';
import { LockTimeoutError } from '../../lib/core/model/errors.js';

const event = { key: 'k', kind: 'mutex', label: undefined } as const;
const released = { ...event, owner: 'o', fencingToken: 1, held: 1, limited: false };

describe('listeners', () => {
  it('hear what they listen to, in order, until they stop', () => {
    const events = new LockEventEmitter(false);
    const heard: string[] = [];
    const stop = events.on('released', ({ key }) => heard.push(`first ${key}`));
    events.on('released', ({ key }) => heard.push(`second ${key}`));
    events.on('lost', () => heard.push('lost'));
    events.emit('released', released);
    stop();
    events.emit('released', released);
    expect(heard).toEqual(['first k', 'second k', 'second k']);
  });

  it('are known to be there for as long as one of them listens', () => {
    const events = new LockEventEmitter(false);
    const stops = [events.on('lost', jest.fn()), events.on('lost', jest.fn())];
    expect(events.isHeard('lost')).toBe(true);
    expect(events.isHeard('released')).toBe(false);
    stops[0]!();
    expect(events.isHeard('lost')).toBe(true);
    for (const stop of stops) stop();
    expect(events.isHeard('lost')).toBe(false);
    events.on('lost', jest.fn());
    stops[1]!();
    expect(events.isHeard('lost')).toBe(true);
  });

  it('that throw are logged, and the others hear all the same', () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const events = new LockEventEmitter(logger);
    const heard = jest.fn();
    events.on('released', () => {
      throw new Error('A fault of the listener.');
    });
    events.on('released', heard);
    events.emit('released', released);
    expect(heard).toHaveBeenCalledWith(released);
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(logger.error.mock.calls[0]).toEqual([expect.stringMatching(/"released".*A fault of the listener/)]);
  });

  it.each([undefined, null, Object.create(null), Symbol('fault')])('may throw anything, such as %p', (fault) => {
    const events = new LockEventEmitter({ warn: jest.fn(), error: jest.fn() });
    events.on('timeout', () => {
      throw fault;
    });
    expect(() =>
      events.emit('timeout', { ...event, waited: 1, attempts: 1, holder: undefined, holderLabel: undefined, waitTimeout: 1 }),
    ).not.toThrow();
  });

  it('that reject are logged too', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const events = new LockEventEmitter(logger);
    events.on('released', () => Promise.reject(new Error('A fault of the listener.')));
    events.emit('released', released);
    await new Promise(setImmediate);
    expect(logger.error.mock.calls).toEqual([[expect.stringMatching(/"released".*A fault of the listener/)]]);
  });

  it('may be one function twice, of which one stops', () => {
    const events = new LockEventEmitter(false);
    const heard = jest.fn();
    const stop = events.on('released', heard);
    events.on('released', heard);
    events.emit('released', released);
    stop();
    stop();
    events.emit('released', released);
    expect(heard).toHaveBeenCalledTimes(3);
  });

  it('may be many, without a warning of a leak', async () => {
    const warnings = jest.fn();
    process.on('warning', warnings);
    const events = new LockEventEmitter(false);
    const heard = jest.fn();
    for (let index = 0; index < 50; index++) events.on('acquired', heard);
    events.emit('acquired', { ...event, owner: 'o', fencingToken: 1, waited: 0, attempts: 1, via: 'free' });
    expect(heard).toHaveBeenCalledTimes(50);
    await new Promise(setImmediate);
    process.off('warning', warnings);
    expect(warnings).not.toHaveBeenCalled();
  });
});

describe('a logger', () => {
  it('need not exist', () => {
    const events = new LockEventEmitter(false);
    expect(() => (events.warn('w'), events.debug('d'))).not.toThrow();
  });

  it('need not have debug', () => {
    const logger: LockLogger = { warn: jest.fn(), error: jest.fn() };
    const events = new LockEventEmitter(logger);
    events.debug('d');
    events.warn('w');
    expect(logger.warn).toHaveBeenCalledWith('w');
  });

  it('keeps its this', () => {
    const logger = {
      lines: [] as string[],
      warn(message: string) {
        this.lines.push(message);
      },
      error: () => undefined,
    };
    new LockEventEmitter(logger).warn('w');
    expect(logger.lines).toEqual(['w']);
  });

  it('that throws is not heard of', () => {
    const fail = () => {
      throw new LockTimeoutError('A fault of the logger.');
    };
    const events = new LockEventEmitter({ warn: fail, error: fail, debug: fail });
    events.on('lost', fail);
    expect(() => {
      events.warn('w');
      events.debug('d');
      events.emit('lost', {
        ...event,
        owner: 'o',
        held: 1,
        reason: 'taken',
        limited: false,
        afterRelease: false,
        error: undefined as never,
      });
    }).not.toThrow();
  });
});
