import type { RedisOptions, TcpOptions } from '@nestjs/microservices';
import { eventually } from '../support/eventually.js';
import { deskOf, serve } from './microservice-desk.js';
import type { Order } from './place.js';

type Transport = () => Promise<TcpOptions | RedisOptions>;

/** What holds for a locked `@MessagePattern` over any transport. */
export function provesMessages(order: Order, transport: Transport): void {
  const open = async () => {
    const Desk = deskOf(order);
    const served = await serve(await transport(), { controllers: [Desk] });
    return { ...served, desk: served.get(Desk) };
  };

  it('answers under its lock, taken once, by what its pipe made of the payload, and with its context', async () => {
    const { ask, acquired } = await open();
    const [apple, padded] = [await ask('reduce', { sku: 'apple' }), await ask('reduce', { sku: ' apple ' })];
    expect(apple).toEqual({ sku: 'apple', key: expect.stringMatching(/^reduce-[0-9a-f]{32}-locks$/), context: true });
    expect(padded).toEqual(apple);
    expect(acquired).toEqual([(apple as { key: string }).key, (apple as { key: string }).key]);
  });

  it('answers with all of an Observable, under one lock, which is free then', async () => {
    const { all, acquired, isTaken } = await open();
    expect(await all('count', [1, 2, 3])).toEqual([1, 2, 3].map((unit) => ({ unit, key: 'Desk.count-locks' })));
    expect(acquired).toEqual(['Desk.count-locks']);
    expect(await isTaken('Desk.count-locks')).toBe(false);
  });

  it('passes its RpcException on', async () => {
    const { ask, isTaken } = await open();
    await expect(ask('refuse', {})).rejects.toEqual({ code: 409, message: 'sold out under Desk.refuse-locks' });
    expect(await isTaken('Desk.refuse-locks')).toBe(false);
  });

  it('tells the client of contention as of any unknown error, and runs beside it for another key', async () => {
    const { ask, desk } = await open();
    const first = ask('slow', 'a');
    await eventually(() => desk.gate.arrived === 1);
    await expect(ask('slow', 'a')).rejects.toEqual({ status: 'error', message: 'Internal server error' });
    const other = ask('slow', 'b');
    await eventually(() => desk.gate.arrived === 2);
    desk.gate.open();
    expect(await Promise.all([first, other])).toEqual(['Desk.slow-a-locks', 'Desk.slow-b-locks']);
    expect(await ask('slow', 'a')).toBe('Desk.slow-a-locks');
    expect(desk.seen).toEqual(['a', 'b', 'a']);
  });
}

/** What holds for a locked `@EventPattern` over any transport. */
export function provesEvents(order: Order, transport: Transport): void {
  it('handles events under its lock, taken once for each, one after the other', async () => {
    const Desk = deskOf(order);
    const { tell, get, acquired, locks } = await serve(await transport(), { controllers: [Desk] });
    const lease = await locks.acquire('Desk.sold-locks', { keyTimeout: 60_000 });
    for (const id of ['a', 'b', 'c']) await tell('sold', id);
    expect(get(Desk).seen).toEqual([]);
    await lease.release();
    await eventually(() => get(Desk).seen.length === 3);
    expect(new Set(get(Desk).seen)).toEqual(new Set(['a', 'b', 'c'].map((id) => [id, 'Desk.sold-locks', true])));
    expect(acquired).toEqual(Array(4).fill('Desk.sold-locks'));
  });

  it('handles an event by an Observable, which runs once', async () => {
    const Desk = deskOf(order);
    const { tell, get, acquired, isTaken } = await serve(await transport(), { controllers: [Desk] });
    await tell('streamed', 'a');
    await eventually(() => get(Desk).seen.length > 0);
    await eventually(async () => !(await isTaken('Desk.streamed-locks')));
    expect(get(Desk).seen).toEqual([['a', 'Desk.streamed-locks']]);
    expect(acquired).toEqual(['Desk.streamed-locks']);
  });
}
