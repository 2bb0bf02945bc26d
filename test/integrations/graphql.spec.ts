import {
  Injectable,
  ParseIntPipe,
  Scope,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { Args, GqlExecutionContext, Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import { currentLease, DistributedLockInterceptor } from 'nestjs-distributed-lock';
import { Tally } from '../nest/tally.js';
import { serveGraphql } from './graphql-app.js';
import { lockAmong, place } from './place.js';

const LONG = { keyTimeout: 60_000, waitTimeout: 20_000 };
const key = () => currentLease()?.key ?? 'unlocked';

class RoleGuard implements CanActivate {
  private readonly reflector = new Reflector();
  canActivate(context: ExecutionContext): boolean {
    const { req } = GqlExecutionContext.create(context).getContext<{ req: { headers: Record<string, string> } }>();
    return req.headers.role === this.reflector.get<string>('role', context.getHandler());
  }
}

place('GraphQL', '@Query, with @Args, pipes and guards', (order) => {
  @Resolver()
  class StockResolver {
    readonly tally = new Tally();

    @lockAmong(order, { value: 'stock', key: (id: string) => id, ...LONG }, Query(() => String))
    async stock(@Args('id', { type: () => String }, ParseIntPipe) id: number) {
      return `${id * 2} ${key()}`;
    }

    @lockAmong(order, { value: 'digest', paramLock: true, ...LONG }, Query(() => String, { name: 'renamed', nullable: true }))
    async digest(@Args('id', { type: () => Int }) _id: number) {
      return key();
    }

    @lockAmong(order, { value: 'guarded', ...LONG }, UseGuards(RoleGuard), SetMetadata('role', 'clerk'), Query(() => String))
    async guarded() {
      return key();
    }

    @lockAmong(order, { value: 'count', reentrant: true, ...LONG }, Query(() => Int))
    async count() {
      return this.tally.add();
    }
  }
  const metadata = { providers: [StockResolver] };

  it('locks once, by what the pipes made of the arguments', async () => {
    const { query, acquired, isTaken } = await serveGraphql(metadata);
    expect((await query('{ stock(id: "21") }')).data).toEqual({ stock: '42 stock-21-locks' });
    expect((await query('{ stock(id: "many") }')).errors).toHaveLength(1);
    expect(acquired).toEqual(['stock-21-locks']);
    expect(await isTaken('stock-21-locks')).toBe(false);
  });

  it('keeps its name in the schema, and takes a digest for a key', async () => {
    const { query } = await serveGraphql(metadata);
    const { data } = await query('{ a: renamed(id: 1) b: renamed(id: 1) c: renamed(id: 2) }');
    expect(data?.a).toMatch(/^digest-[0-9a-f]{32}-locks$/);
    expect([data?.b === data?.a, data?.c === data?.a]).toEqual([true, false]);
  });

  it('locks after the guard has let the request in', async () => {
    const { post, acquired } = await serveGraphql(metadata);
    expect((await post('graphql', { query: '{ guarded }' })).body).toMatchObject({ data: null, errors: [{ path: ['guarded'] }] });
    expect(acquired).toEqual([]);
  });

  it('lets one in at a time: the fields of one request, which run side by side, and several requests', async () => {
    const { query, get, acquired } = await serveGraphql(metadata);
    const fields = ['a', 'b', 'c', 'd'].map((alias) => `${alias}: count`).join(' ');
    const answers = await Promise.all([query(`{ ${fields} }`), query(`{ ${fields} }`)]);
    const counts = answers.flatMap(({ data }) => Object.values(data ?? {}) as number[]);
    expect(counts.sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(get(StockResolver).tally).toMatchObject({ value: 8, most: 1 });
    expect(acquired).toEqual(Array(8).fill('count-locks'));
  });
});

place('GraphQL', '@Mutation, alone and several in one request', (order) => {
  @Resolver()
  class OrderResolver {
    readonly tally = new Tally();

    @lockAmong(order, { value: 'buy', ...LONG }, Mutation(() => String))
    async buy() {
      return `${await this.tally.add()} ${key()}`;
    }

    // A schema needs a query.
    @Query(() => Int)
    async bought() {
      return this.tally.value;
    }
  }

  it('locks once for each, between requests too', async () => {
    const { query, get, acquired } = await serveGraphql({ providers: [OrderResolver] });
    const one = await query('mutation { a: buy b: buy }');
    expect(one.data).toEqual({ a: '1 buy-locks', b: '2 buy-locks' });
    await Promise.all([query('mutation { a: buy b: buy }'), query('mutation { buy }'), query('mutation { buy }')]);
    expect(get(OrderResolver).tally).toMatchObject({ value: 6, most: 1 });
    expect(acquired).toEqual(Array(6).fill('buy-locks'));
  });

  it('locks operations that came in one HTTP request one after the other', async () => {
    const { post, get, acquired } = await serveGraphql({ providers: [OrderResolver] }, {}, { allowBatchedHttpRequests: true });
    const { body } = await post('graphql', [{ query: 'mutation { buy }' }, { query: 'mutation { buy }' }, { query: 'mutation { buy }' }]);
    expect((body as { data: object }[]).map(({ data }) => data)).toHaveLength(3);
    expect(get(OrderResolver).tally).toMatchObject({ value: 3, most: 1 });
    expect(acquired).toEqual(Array(3).fill('buy-locks'));
  });
});

place('GraphQL', 'a resolver of request scope, and one with the interceptor bound besides: locked once', (order) => {
  // With `reentrant: false` a method that is locked twice waits for itself, in vain.
  const ONCE = { reentrant: false, waitTimeout: 0, keyTimeout: 60_000 };

  @Resolver()
  class BoundResolver {
    @lockAmong(order, { value: 'bound', ...ONCE }, UseInterceptors(DistributedLockInterceptor), Query(() => String))
    async bound() {
      return key();
    }
  }
  @Resolver()
  @Injectable({ scope: Scope.REQUEST })
  class RequestResolver {
    static made = 0;
    constructor() {
      RequestResolver.made++;
    }

    @lockAmong(order, { value: 'scoped', ...ONCE }, Query(() => String))
    async scoped() {
      return key();
    }
  }

  it('locks once', async () => {
    const globally = { provide: APP_INTERCEPTOR, useClass: DistributedLockInterceptor };
    const { query, acquired } = await serveGraphql({ providers: [BoundResolver, RequestResolver, globally] });
    expect((await query('{ bound scoped }')).data).toEqual({ bound: 'bound-locks', scoped: 'scoped-locks' });
    expect(acquired.toSorted()).toEqual(['bound-locks', 'scoped-locks']);
    const { made } = RequestResolver;
    await query('{ scoped }');
    expect(RequestResolver.made).toBe(made + 1);
  });
});
