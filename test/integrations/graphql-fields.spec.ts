import { Args, Field, Int, ObjectType, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { currentLease } from 'nestjs-distributed-lock';
import { Tally } from '../nest/tally.js';
import { serveGraphql } from './graphql-app.js';
import { lockAmong, place } from './place.js';

const LONG = { keyTimeout: 60_000, waitTimeout: 20_000 };
const key = () => currentLease()?.key ?? 'unlocked';

@ObjectType()
class Shelf {
  @Field(() => Int)
  id!: number;
}

place('GraphQL', '@ResolveField, for each of many parents', (order) => {
  @Resolver(() => Shelf)
  class ShelfResolver {
    readonly tally = new Tally();

    @Query(() => [Shelf])
    async shelves(@Args('count', { type: () => Int }) count: number) {
      return Array.from({ length: count }, (_, id) => ({ id }));
    }

    @lockAmong(order, { value: 'shelf', ...LONG }, Query(() => Shelf))
    async shelf() {
      return { id: 7 };
    }

    @lockAmong(order, { value: 'total', ...LONG }, ResolveField(() => Int))
    async total(@Parent() _shelf: Shelf) {
      return this.tally.add();
    }

    @lockAmong(order, { value: 'own', key: (shelf: Shelf) => shelf.id, ...LONG }, ResolveField('itsKey', () => String))
    async own(@Parent() _shelf: Shelf) {
      return key();
    }

    @lockAmong(order, { value: 'shelf', ...LONG }, ResolveField(() => String))
    async same() {
      return key();
    }

    @lockAmong(order, { value: 'label', paramLock: ['0.id'], ...LONG }, ResolveField(() => String))
    async label() {
      return key();
    }
  }
  const serve = () => serveGraphql({ providers: [ShelfResolver] });

  it('locks once for each parent, one at a time where they share a key', async () => {
    const { query, get, acquired } = await serve();
    const { data } = await query('{ shelves(count: 6) { total } }');
    const totals = (data?.shelves as { total: number }[]).map(({ total }) => total);
    expect(totals.sort()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(get(ShelfResolver).tally).toMatchObject({ value: 6, most: 1 });
    expect(acquired).toEqual(Array(6).fill('total-locks'));
  });

  it('locks by the parent, as it is given by @Parent', async () => {
    const { query, acquired } = await serve();
    const { data } = await query('{ shelves(count: 3) { itsKey } }');
    expect(data).toEqual({ shelves: [0, 1, 2].map((id) => ({ itsKey: `own-${id}-locks` })) });
    expect(acquired.toSorted()).toEqual(['own-0-locks', 'own-1-locks', 'own-2-locks']);
  });

  it('locks by the parent where the method names no parameters, too: GraphQL hands it on as the first', async () => {
    const { query } = await serve();
    const { data } = await query('{ shelves(count: 2) { label } }');
    const [one, two] = (data?.shelves as { label: string }[]).map(({ label }) => label);
    expect(one).toMatch(/^label-[0-9a-f]{32}-locks$/);
    expect(two).not.toBe(one);
  });

  it('takes the key of its own @Query anew: the query has given it back when its fields are resolved', async () => {
    const { query, acquired, isTaken } = await serve();
    expect(await query('{ shelf { id same } }')).toEqual({
      status: 200,
      data: { shelf: { id: 7, same: 'shelf-locks' } },
      errors: undefined,
    });
    expect(acquired).toEqual(['shelf-locks', 'shelf-locks']);
    expect(await isTaken('shelf-locks')).toBe(false);
  });

  it('locks all of it in one request: aliases, parents and fields that share a key', async () => {
    const { query, get, acquired } = await serve();
    const { data, errors } = await query('{ a: shelf { total same } b: shelf { total same } shelves(count: 3) { total same } }');
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ a: { same: 'shelf-locks' }, b: { same: 'shelf-locks' } });
    expect(get(ShelfResolver).tally).toMatchObject({ value: 5, most: 1 });
    expect(acquired).toHaveLength(2 + 5 + 5);
  });
});
