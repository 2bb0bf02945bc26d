import { ModulesContainer } from '@nestjs/core';
import { LockConfigError, type Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { LockRegistry } from '../../lib/nest/lock-registry.js';
import { boot, type Booted } from './boot.js';

interface Registry {
  register(name: string, options: object): Locks;
}

/** The registry that a feature library has in an app when it brings its own copy of the package along. */
async function registryOfAnotherCopyIn({ app }: Booted): Promise<Registry> {
  let Copy!: new (app: ModulesContainer) => Registry;
  await jest.isolateModulesAsync(async () => {
    Copy = (await import('../../lib/nest/lock-registry.js')).LockRegistry;
  });
  expect(Copy).not.toBe(LockRegistry);
  return new Copy(app.get(ModulesContainer));
}

describe('two copies of the package in one app', () => {
  it('know the stores that the other one registers, and refuse a name that it has taken', async () => {
    const booted = await boot({});
    const other = await registryOfAnotherCopyIn(booted);
    expect(() => other.register('default', { store: memoryStore() })).toThrow(/imported twice for the store "default"/);
    other.register('feature', { store: memoryStore() });
    expect(() => booted.app.get(LockRegistry).register('feature', { store: memoryStore() })).toThrow(LockConfigError);
  });

  it('do not share the stores of two apps', async () => {
    const [first, second] = [await boot({}), await boot({})];
    const feature = { store: memoryStore(), logger: false as const };
    const ofFirst = (await registryOfAnotherCopyIn(first)).register('feature', feature);
    // The name is free in the second app, for its own copy as for another, and stands for another store.
    const ofSecond = second.app.get(LockRegistry).register('feature', { ...feature, store: memoryStore() });
    const stranger = await registryOfAnotherCopyIn(second);
    expect(() => stranger.register('feature', feature)).toThrow(/"feature"/);
    const held = await ofFirst.acquire('key', { keyTimeout: 60_000 });
    expect(await ofSecond.tryAcquire('key')).not.toBeNull();
    // What the first app closes at its end is not the second's.
    await held.release();
    await first.app.close();
    await expect(ofFirst.acquire('other')).rejects.toHaveProperty('name', 'LockAbortedError');
    expect(await ofSecond.using('other', () => 'open')).toBe('open');
  });
});
