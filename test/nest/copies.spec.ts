import { ModulesContainer } from '@nestjs/core';
import { DistributedLockModule, LockConfigError, type Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot } from './boot.js';

describe('two copies of the package in one app', () => {
  /** As a feature library has it that brings its own copy along. */
  async function registryOfAnotherCopy(): Promise<new (app: ModulesContainer) => { register(name: string, options: object): Locks }> {
    let copy: unknown;
    await jest.isolateModulesAsync(async () => {
      copy = (await import('../../lib/nest/lock-registry.js')).LockRegistry;
    });
    return copy as never;
  }

  it('know the stores that the other one registers, and refuse a name that it has taken', async () => {
    const { app } = await boot({});
    const OtherRegistry = await registryOfAnotherCopy();
    const other = new OtherRegistry(app.get(ModulesContainer));
    expect(() => other.register('default', { store: memoryStore() })).toThrow(/imported twice for the store "default"/);
    const { LockRegistry } = await import('../../lib/nest/lock-registry.js');
    other.register('feature', { store: memoryStore() });
    expect(() => app.get(LockRegistry).register('feature', { store: memoryStore() })).toThrow(LockConfigError);
  });

  it('do not share the stores of two apps', async () => {
    await boot({});
    await expect(boot({ imports: [DistributedLockModule.forRoot({ name: 'second', store: memoryStore() })] })).resolves.toBeDefined();
  });
});
