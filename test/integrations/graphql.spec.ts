import { ParseIntPipe, SetMetadata, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { APP_FILTER, Reflector } from '@nestjs/core';
import { Args, Field, GqlExecutionContext, Int, Mutation, ObjectType, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { LockExceptionFilter } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { SharedCounter } from '../support/shared-counter.js';
import { serveGraphql } from './graphql-app.js';
import { storeThatIsAway } from './http-app.js';
import { StockResolver, StockService } from './graphql-docs.js';
import { key, lockAmong, LONG, aboveAndBelow, type Order } from './ways.js';

class RoleGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { req } = GqlExecutionContext.create(context).getContext<{ req: { headers: Record<string, string> } }>();
    return req.headers.role === new Reflector().get<string>('role', context.getHandler());
  }
}

@ObjectType()
class Shelf {
  @Field(() => Int)
  id!: number;
}

async function serveShop(order: Order, config = {}) {
  @Resolver(() => Shelf)
  class ShopResolver {
    readonly counter = new SharedCounter();

    @lockAmong(order, { value: 'stock', key: (id: string) => id, ...LONG }, Query(() => String, { name: 'renamed' }))
    async stock(@Args('id', { type: () => String }, ParseIntPipe) id: number) {
      return `${id * 2} ${key()}`;
    }
    @lockAmong(order, { value: 'guarded', ...LONG }, UseGuards(RoleGuard), SetMetadata('role', 'clerk'), Query(() => String))
    async guarded() {
      return key();
    }
    @lockAmong(order, { value: 'count', ...LONG }, Query(() => Int))
    async count() {
      return this.counter.increment();
    }
    @lockAmong(order, { value: 'buy', ...LONG }, Mutation(() => String))
    async buy() {
      return `${await this.counter.increment()} ${key()}`;
    }
    @lockAmong(order, { value: 'shelf', ...LONG }, Query(() => [Shelf]))
    async shelves(@Args('count', { type: () => Int }) count: number) {
      return Array.from({ length: count }, (_, id) => ({ id }));
    }
    @lockAmong(order, { value: 'total', ...LONG }, ResolveField(() => Int))
    async total(@Parent() _shelf: Shelf) {
      return this.counter.increment();
    }
    @lockAmong(order, { value: 'own', key: (shelf: Shelf) => shelf.id, ...LONG }, ResolveField('itsKey', () => String))
    async own(@Parent() _shelf: Shelf) {
      return key();
    }
    @lockAmong(order, { value: 'shelf', ...LONG }, ResolveField(() => String))
    async same() {
      return key();
    }
  }
  const served = await serveGraphql({ providers: [ShopResolver] }, {}, config);
  return { ...served, counter: served.get(ShopResolver).counter };
}

aboveAndBelow('GraphQL', '@Query, with @Args, pipes and guards', (order) => {
  it('locks once, by what the pipes made of the arguments, after the guard has let the request in', async () => {
    const { query, acquired } = await serveShop(order);
    expect((await query('{ renamed(id: "21") }')).data).toEqual({ renamed: '42 stock-21-locks' });
    expect((await query('{ renamed(id: "many") }')).errors).toHaveLength(1);
    expect(await query('{ guarded }')).toMatchObject({ data: null, errors: [{ path: ['guarded'] }] });
    expect(acquired).toEqual(['stock-21-locks']);
  });

  it('lets one in at a time: the fields of one request, which run side by side, and several requests', async () => {
    const { query, counter, acquired } = await serveShop(order);
    const fields = ['a', 'b', 'c', 'd'].map((alias) => `${alias}: count`).join(' ');
    const answers = await Promise.all([query(`{ ${fields} }`), query(`{ ${fields} }`)]);
    const counts = answers.flatMap(({ data }) => Object.values(data ?? {}) as number[]);
    expect(counts.sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(counter).toMatchObject({ value: 8, overlaps: 0 });
    expect(acquired).toEqual(Array(8).fill('count-locks'));
  });
});

aboveAndBelow('GraphQL', '@Mutation, alone and several in one request', (order) => {
  it('locks once for each, between requests too, and where several came in one HTTP request', async () => {
    const { query, post, counter, acquired } = await serveShop(order, { allowBatchedHttpRequests: true });
    const one = await query('mutation { a: buy b: buy }');
    expect(one.data).toEqual({ a: '1 buy-locks', b: '2 buy-locks' });
    const batch = Array(3).fill({ query: 'mutation { buy }' });
    await Promise.all([query('mutation { a: buy b: buy }'), query('mutation { buy }'), post('graphql', batch)]);
    expect(counter).toMatchObject({ value: 8, overlaps: 0 });
    expect(acquired).toEqual(Array(8).fill('buy-locks'));
  });
});

aboveAndBelow('GraphQL', '@ResolveField, for each of many parents', (order) => {
  it('locks once for each parent: by the parent, one at a time where they share a key, and by the key of the query again', async () => {
    const { query, counter, acquired } = await serveShop(order);
    const { data } = await query('{ shelves(count: 4) { total itsKey same } }');
    const shelves = data?.shelves as { total: number }[];
    expect(shelves).toMatchObject([0, 1, 2, 3].map((id) => ({ itsKey: `own-${id}-locks`, same: 'shelf-locks' })));
    expect(shelves.map(({ total }) => total).sort()).toEqual([1, 2, 3, 4]);
    expect(counter).toMatchObject({ value: 4, overlaps: 0 });
    const own = [0, 1, 2, 3].map((id) => `own-${id}-locks`);
    expect(acquired.toSorted()).toEqual([...own, ...Array(5).fill('shelf-locks'), ...Array(4).fill('total-locks')]);
  });
});

const SECRET = 'order-of-alice';
const REFUSED = { status: 200, data: { buy: null }, errors: [{ path: ['buy'] }] };

async function serveOrders(order: Order, providers: object[], options = {}) {
  @Resolver()
  class OrderResolver {
    readonly gate = new Gate();
    error: Error | undefined;

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, Mutation(() => String, { nullable: true }))
    async buy() {
      await this.gate.pass();
      if (this.error) throw this.error;
      return key();
    }
  }
  const served = await serveGraphql({ providers: [OrderResolver, ...(providers as [])] }, options);
  const resolver = served.get(OrderResolver);
  /** The answer while another request is in. */
  const contend = async () => {
    const first = served.query('mutation { buy }');
    await eventually(() => resolver.gate.arrived === 1);
    const refused = await served.query('mutation { buy }');
    resolver.gate.open();
    expect((await first).data).toEqual({ buy: `${SECRET}-locks` });
    expect([resolver.gate.arrived, served.acquired]).toEqual([1, [`${SECRET}-locks`]]);
    return refused;
  };
  return { ...served, resolver, contend };
}
aboveAndBelow('GraphQL', 'contention and outage, reported in the errors of the response', (order) => {
  it('answers the field with an error while another request is in, or the store is away, and runs nothing', async () => {
    const { contend } = await serveOrders(order, []);
    expect(await contend()).toMatchObject(REFUSED);
    const { query, resolver } = await serveOrders(order, [], { store: storeThatIsAway() });
    expect(await query('mutation { buy }')).toMatchObject(REFUSED);
    expect(resolver.gate.arrived).toBe(0);
  });
});

aboveAndBelow('GraphQL', 'LockExceptionFilter, bound to the app: 423 and 503 in the extensions, and no key', (order) => {
  const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };

  it('says 423 while another request is in, and 503 while Redis is away, and leaves other errors alone', async () => {
    const { contend, query: buy, resolver } = await serveOrders(order, [filter]);
    const { query } = await serveOrders(order, [filter], { store: storeThatIsAway() });
    for (const [answer, status, code] of [
      [await contend(), 423, 'LOCK_TIMEOUT'],
      [await query('mutation { buy }'), 503, 'LOCK_STORE'],
    ] as const) {
      expect(answer).toMatchObject({ ...REFUSED, errors: [{ extensions: { status, originalError: { code } } }] });
      expect(JSON.stringify(answer)).not.toContain(SECRET);
    }
    resolver.error = new Error('sold out');
    expect(await buy('mutation { buy }')).toMatchObject({ data: { buy: null }, errors: [{ message: 'sold out' }] });
  });
});

it('docs/http.md: a mutation is locked by its argument', async () => {
  const { query, get, acquired } = await serveGraphql({ providers: [StockResolver, StockService] });
  const { counted } = get(StockService);
  expect((await query('mutation { a: reduce(shelf: 7, units: 2) b: reduce(shelf: 7, units: 3) }')).data).toEqual({ a: 8, b: 5 });
  expect([counted, acquired]).toEqual([Array(2).fill('stock-7-locks'), Array(2).fill('stock-7-locks')]);
});
