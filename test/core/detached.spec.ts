import { AsyncLocalStorage } from 'node:async_hooks';

/** As an app does that loads the package with its first request. */
async function importedInside<T>(chain: AsyncLocalStorage<string>, load: () => Promise<T>): Promise<T> {
  let loaded!: T;
  await chain.run('the call that imported the package', () => jest.isolateModulesAsync(async () => void (loaded = await load())));
  return loaded;
}

describe('what outlives the call that happens to make it', () => {
  const chain = new AsyncLocalStorage<string>();

  it('keeps nothing of that call, nor of the one that first imported the package', async () => {
    const { after } = await importedInside(chain, () => import('../../lib/core/util/clock.js'));
    const later = new AsyncLocalStorage<string>();
    const seen = await chain.run('the call that makes it', () =>
      later.run('by another storage', () => new Promise((resolve) => after(1, () => resolve([chain.getStore(), later.getStore()])))),
    );
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is made at once, with its result or error, and the call goes on in its own context', async () => {
    const { detached } = await importedInside(chain, () => import('../../lib/core/util/detached.js'));
    chain.run('the call', () => {
      expect(detached(() => [chain.getStore(), 'made'])).toEqual([undefined, 'made']);
      expect(() =>
        detached(() => {
          throw new Error('not made');
        }),
      ).toThrow('not made');
      expect(chain.getStore()).toBe('the call');
    });
  });
});
