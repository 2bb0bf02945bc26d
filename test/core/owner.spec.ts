import { hostname } from 'node:os';
import { ownerIds } from '../../lib/core/model/owner.js';

describe('an owner id', () => {
  it('says which app, host and process holds the key', () => {
    const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
    const { groups } = new RegExp(`^(?<app>.+)@(?<host>.+):(?<pid>\\d+):${uuid}$`).exec(ownerIds('@acme/shop')()) ?? {};
    expect(groups).toMatchObject({ app: '@acme/shop', host: hostname(), pid: String(process.pid) });
  });

  it('is never the same twice', () => {
    expect(new Set(Array.from({ length: 1_000 }, ownerIds())).size).toBe(1_000);
  });
});
