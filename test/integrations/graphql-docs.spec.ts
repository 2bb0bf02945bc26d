// The snippets of docs/graphql.md do what it says.
import { eventually } from '../support/eventually.js';
import { serveGraphql } from './graphql-app.js';
import { StockResolver, StockService } from './graphql-docs.js';
import { Subscriber } from './graphql-subscriber.js';

describe('docs/graphql.md', () => {
  const serve = () => serveGraphql({ providers: [StockResolver, StockService] }, {}, { subscriptions: { 'graphql-ws': true } });

  it('locks a mutation by its argument', async () => {
    const { query, get, acquired } = await serve();
    const { data } = await query('mutation { a: reduce(shelf: 7, units: 2) b: reduce(shelf: 7, units: 3) }');
    expect(data).toEqual({ a: 8, b: 5 });
    expect(get(StockService).counted).toEqual(['stock-7-locks', 'stock-7-locks']);
    expect(acquired).toEqual(['stock-7-locks', 'stock-7-locks']);
  });

  it('locks a field by its parent', async () => {
    const { query, get, acquired } = await serve();
    expect((await query('{ shelves { units } }')).data).toEqual({ shelves: Array(3).fill({ units: 10 }) });
    expect(get(StockService).counted.toSorted()).toEqual(['stock-1-locks', 'stock-2-locks', 'stock-3-locks']);
    expect(acquired).toHaveLength(3);
  });

  it('lets one subscriber in at a time', async () => {
    const { url, get, isTaken } = await serve();
    const { changes } = get(StockService);
    const first = new Subscriber(url, 'subscription { changes }');
    await first.received(1);
    const second = new Subscriber(url, 'subscription { changes }');
    await eventually(() => second.isHeard);
    expect(changes.begun).toEqual(['changes-locks']);
    await first.complete();
    expect(await second.received(1)).toEqual([0]);
    expect([changes.most, changes.begun]).toEqual([1, ['changes-locks', 'changes-locks']]);
    await second.complete();
    await eventually(async () => !(await isTaken('changes-locks')));
  });
});
