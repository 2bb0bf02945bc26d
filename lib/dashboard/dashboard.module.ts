import {
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  ForbiddenException,
  Get,
  HttpException,
  Inject,
  Injectable,
  Module,
  Post,
  Req,
  Res,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { LockRegistry } from '../nest/lock-registry.js';
import { Dashboard, PAGE_HEADERS } from './dashboard.js';
import { checkDashboardOptions, type DistributedLockDashboardOptions } from './dashboard.options.js';
import { page } from './page.generated.js';
import { readJson, Refused } from './refused.js';
import { forgeryIn } from './same-origin.js';

export { basicAuth } from './basic-auth.js';
export type { DashboardAction, DistributedLockDashboardOptions, Verdict } from './dashboard.options.js';

const OPTIONS = Symbol.for('nestjs-distributed-lock:dashboard-options');

/** A request of Express or Fastify. */
interface Request {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly raw?: IncomingMessage;
}

interface Operator {
  readonly by: string | null;
  readonly mayRelease: () => Promise<boolean>;
}

/** The senders of requests. */
const operators = new WeakMap<object, Operator>();

/** After the guards of the app, which know the user. */
@Injectable()
class DashboardGate implements CanActivate {
  constructor(@Inject(OPTIONS) private readonly options: DistributedLockDashboardOptions) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const action = request.method === 'POST' ? 'release' : 'view';
    const { name } = context.getHandler();
    const forgery = name === 'page' ? undefined : forgeryIn(request.headers, request.method, this.options.origins);
    if (forgery !== undefined) throw new ForbiddenException(forgery);
    const verdict = await this.options.authorize(action, context);
    operators.set(request, {
      by: (Object(verdict) as { by?: string }).by ?? null,
      mayRelease: async () => Boolean(await this.options.authorize('release', context)),
    });
    return Boolean(verdict);
  }
}

/** Answers by the adapter: an interceptor of the app that wraps what is returned would wrap the page. */
class DashboardController {
  private made: Dashboard | undefined;

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(LockRegistry) private readonly registry: LockRegistry,
    @Inject(OPTIONS) private readonly options: DistributedLockDashboardOptions,
  ) {}

  /** Made by the first request: all stores are registered then. */
  private get dashboard(): Dashboard {
    return (this.made ??= new Dashboard(this.registry.all, this.options));
  }

  @Get()
  page(@Res() response: unknown): void {
    this.reply(response, page, PAGE_HEADERS);
  }

  @Get('state')
  async state(@Req() request: Request, @Res() response: unknown): Promise<void> {
    const { by, mayRelease } = operators.get(request)!;
    const me = { by, mayRelease: await mayRelease().catch(() => false) };
    const { store, q } = request.query;
    this.reply(response, await this.answered(() => this.dashboard.state(store, q, me)));
  }

  @Get('key')
  async key(@Req() { query }: Request, @Res() response: unknown): Promise<void> {
    this.reply(response, await this.answered(() => this.dashboard.key(query.store, query.key)));
  }

  @Post('release')
  async release(@Req() request: Request, @Res() response: unknown): Promise<void> {
    await this.order(request, response, (body, by) => this.dashboard.release(body, by));
  }

  @Post('hold')
  async hold(@Req() request: Request, @Res() response: unknown): Promise<void> {
    await this.order(request, response, (body, by) => this.dashboard.hold(body, by));
  }

  private async order(request: Request, response: unknown, order: (body: unknown, by: string | null) => Promise<unknown>): Promise<void> {
    const { body, raw = request as unknown as IncomingMessage } = request;
    // The app may parse no bodies.
    const isParsed = body !== undefined && body !== null && !('pipe' in Object(body));
    const answer = async (): Promise<unknown> => order(isParsed ? body : await readJson(raw), operators.get(request)!.by);
    this.reply(response, await this.answered(answer));
  }

  private reply(response: unknown, body: unknown, headers: Readonly<Record<string, string>> = { 'cache-control': 'no-store' }): void {
    const { httpAdapter } = this.host;
    for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, body, 200);
  }

  private async answered<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof Refused ? new HttpException(error.message, error.status) : error;
    }
  }
}

/** A page that shows the locks and their holders. It needs `DistributedLockModule`, and shows all stores of the app. */
@Module({})
export class DistributedLockDashboardModule {
  /** @throws {LockConfigError} if an option is wrong, or `authorize` is missing. */
  static forRoot(options: DistributedLockDashboardOptions): DynamicModule {
    checkDashboardOptions(options);
    const { path = 'locks', guards = [], decorators = [] } = options;
    // A class of its own, since an app may have several.
    class MountedDashboardController extends DashboardController {}
    const all = [Controller({ path, version: VERSION_NEUTRAL }), UseGuards(...guards, DashboardGate), ...decorators];
    for (const decorate of all) decorate(MountedDashboardController);
    return {
      module: DistributedLockDashboardModule,
      controllers: [MountedDashboardController],
      providers: [DashboardGate, { provide: OPTIONS, useValue: options }],
    };
  }
}
