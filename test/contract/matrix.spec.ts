import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';

/** One of each store; none of them connects before it is asked something. */
const STORES: Record<string, () => LockStore> = {
  memory: memoryStore,
  redis: () => redisStore({ options: { path: '/nowhere' } }),
};

const root = join(__dirname, '../..');
const filesBelow = (folder: string, ending: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending));
const textOf = (folder: string, ending: string) =>
  filesBelow(folder, ending)
    .map((file) => readFileSync(join(root, folder, file), 'utf8'))
    .join('\n');

const specs = textOf('test/stores', '.spec.ts');

/** `countDownLatch` becomes `count-down-latch`. */
const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** A primitive is whatever the store offers that has verbs. */
const primitivesOf = (store: LockStore) =>
  Object.entries(store)
    .filter(([, value]) => typeof value === 'object' && value !== null)
    .map(([name]) => name);

describe('the matrix of stores and primitives', () => {
  it('has every store of lib/stores', () => {
    const names = filesBelow('lib/stores', '.store.ts').map((file) => file.replace(/^.*\//, '').replace('.store.ts', ''));
    expect(names.sort()).toEqual(Object.keys(STORES).sort());
  });

  describe.each(Object.entries(STORES))('the %s store', (name, make) => {
    const store = make();
    afterAll(() => store.close());

    it('has the name that it is listed under', () => expect(store.name).toBe(name));

    it('offers a mutex', () => expect(primitivesOf(store)).toContain('mutex'));

    it.each(primitivesOf(store))('runs the contract of its %s', (primitive) => {
      expect(filesBelow('test/contract', '.contract.ts')).toContain(`${kebab(primitive)}.contract.ts`);
      expect(specs).toMatch(new RegExp(`^${primitive}Contract\\(\\s*'${name}'`, 'm'));
    });
  });

  it.each(['G1', 'G2', 'G3', 'G4', 'G5', 'G6', 'G7', 'G8', 'G9', 'G10'])('has guarantee %s by name in the mutex contract', (guarantee) => {
    const contract = textOf('test/contract', '.contract.ts');
    expect(contract).toMatch(new RegExp(`\\bdescribe\\(['"\`]${guarantee} `));
  });

  it('has every part of a contract in the whole', () => {
    const contracts = filesBelow('test/contract', '.contract.ts');
    const textOfWhole = (primitive: string) => readFileSync(join(root, `test/contract/${primitive}.contract.ts`), 'utf8');
    const parts = contracts.filter((file) => file.split('.').length > 3);
    for (const part of parts) expect(textOfWhole(part.split('.')[0]!)).toContain(`from './${part.replace(/ts$/, 'js')}'`);
    expect(textOfWhole('mutex')).toContain("from './lease-driver.contract.js'");
  });

  it.each(['leader-election', 'multi-lock'])('runs the contract of %s, which is made of mutexes, on every store', (primitive) => {
    expect(filesBelow('test/contract', '.contract.ts')).toContain(`${primitive}.contract.ts`);
    const name = primitive.replace(/-./g, ([, letter = '']) => letter.toUpperCase());
    for (const store of Object.keys(STORES)) expect(specs).toMatch(new RegExp(`^${name}Contract\\(\\s*'${store}'`, 'm'));
  });
});
