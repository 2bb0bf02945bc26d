import type { ModuleMetadata } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import type { DistributedLockModuleOptions } from 'nestjs-distributed-lock';
import { serve } from './http-app.js';

interface GraphqlAnswer {
  status: number;
  data: Record<string, unknown> | null | undefined;
  errors: { message: string; path: (string | number)[]; extensions: Record<string, unknown> }[] | undefined;
}

/** A schema needs a query. */
@Resolver()
class NeededQuery {
  @Query(() => Int)
  needed() {
    return 1;
  }
}

/** An app with Apollo, whose schema comes from the classes of its resolvers. */
export async function serveGraphql(
  { imports = [], providers = [], ...metadata }: ModuleMetadata,
  options?: Partial<DistributedLockModuleOptions>,
  config: Omit<ApolloDriverConfig, 'driver'> = {},
) {
  const apollo = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    graphiql: false,
    includeStacktraceInErrorResponses: false,
    ...config,
  });
  const served = await serve('express', { ...metadata, imports: [apollo, ...imports], providers: [NeededQuery, ...providers] }, options);
  const query = async (text: string) => {
    const { status, body } = await served.post('graphql', { query: text });
    return { ...(body as object), status } as GraphqlAnswer;
  };
  return { ...served, query };
}
