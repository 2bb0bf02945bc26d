import { LinkedEntry, LinkedList } from '../../lib/core/util/linked-list.js';

class Entry extends LinkedEntry<Entry> {
  constructor(readonly name: string) {
    super();
  }
}

describe('a linked list', () => {
  let list: LinkedList<Entry>;
  let entries: Record<'a' | 'b' | 'c', Entry>;

  const names = (): string => [...list].map(({ name }) => name).join('');

  beforeEach(() => {
    list = new LinkedList();
    entries = { a: new Entry('a'), b: new Entry('b'), c: new Entry('c') };
    for (const entry of Object.values(entries)) list.add(entry);
  });

  it('keeps the order in which its entries came', () => {
    expect(names()).toBe('abc');
    expect(list.first).toBe(entries.a);
    expect(list.size).toBe(3);
  });

  it.each([
    ['a', 'bc', 'bca'],
    ['b', 'ac', 'acb'],
    ['c', 'ab', 'abc'],
  ] as const)('lets %s go, and takes it again as the last one', (name, without, again) => {
    expect(list.delete(entries[name])).toBe(true);
    expect(names()).toBe(without);
    expect(list.has(entries[name])).toBe(false);
    list.add(entries[name]);
    expect(names()).toBe(again);
    expect(list.size).toBe(3);
  });

  it('leaves nothing in those that are gone', () => {
    for (const entry of Object.values(entries)) {
      list.delete(entry);
      expect(entry).toMatchObject({ list: undefined, previous: undefined, next: undefined });
    }
    expect(list).toMatchObject({ first: undefined, size: 0 });
    expect(names()).toBe('');
  });

  it('lets go only what is its own, and once', () => {
    const other = new LinkedList<Entry>();
    expect(other.delete(entries.b)).toBe(false);
    list.delete(entries.b);
    expect(list.delete(entries.b)).toBe(false);
    expect(names()).toBe('ac');
  });

  it('may lose entries while it is gone through', () => {
    const seen: string[] = [];
    for (const entry of list) {
      seen.push(entry.name);
      list.delete(entries.a);
      list.delete(entries.b);
    }
    expect(seen.join('')).toBe('abc');
    expect(names()).toBe('c');
  });
});
