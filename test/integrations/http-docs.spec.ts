// The snippets of docs/http.md do what it says.
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve } from './http-app.js';
import { OrderModule, PriceController, ReportController } from './http-docs.js';
import { SseClient } from './sse-client.js';

describe.each(ADAPTERS)('docs/http.md (%s)', (adapter) => {
  it('locks orders by the number that the pipe made, and answers 423 where one stays taken', async () => {
    const { post, locks, acquired } = await serve(adapter, { imports: [OrderModule] });
    expect(await post('orders/042/items', { sku: 'apple' })).toMatchObject({ status: 201, body: { id: 42, sku: 'apple' } });
    expect(acquired).toEqual(['orders-42-locks']);
    const lease = await locks.acquire('orders-42-locks', { keyTimeout: 60_000 });
    expect(await post('orders/42/items', { sku: 'pear' })).toMatchObject({ status: 423, body: { code: 'LOCK_TIMEOUT' } });
    await lease.release();
  });

  it('builds a report under the lock', async () => {
    const { ask, acquired } = await serve(adapter, { controllers: [ReportController] });
    expect((await ask('reports/yearly')).text).toBe('built under report-locks');
    expect(acquired).toEqual(['report-locks']);
  });

  it('feeds one client, and tells another that it is busy', async () => {
    const { url, isTaken } = await serve(adapter, { controllers: [PriceController] });
    const client = new SseClient(`${url}/prices/feed`);
    expect(await client.data(1)).toEqual(['price 0']);
    const other = new SseClient(`${url}/prices/feed`);
    await eventually(() => other.hasEnded);
    expect(other.events).toEqual([{ type: 'busy', data: 'try later' }]);
    expect(await isTaken('feed-locks')).toBe(true);
    client.leave();
    await eventually(async () => !(await isTaken('feed-locks')));
  });
});
