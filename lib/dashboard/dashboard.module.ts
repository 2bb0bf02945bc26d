import {
  type BeforeApplicationShutdown,
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
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { LockRegistry } from '../nest/lock-registry.js';
import { Dashboard, Refused } from './dashboard.js';
import { checkDashboardOptions, type DistributedLockDashboardOptions } from './dashboard.options.js';
import { page, scriptHash, styleHash } from './page.generated.js';
import { forgeryIn } from './same-origin.js';

export type { DashboardAction, DistributedLockDashboardOptions, Verdict } from './dashboard.options.js';

const OPTIONS = Symbol.for('nestjs-distributed-lock:dashboard-options');
const LONGEST_BODY = 65_536;
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    `style-src '${styleHash}'`,
    "connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  ].join('; '),
  'cache-control': 'no-store, no-transform',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** A request of Express or Fastify. */
interface Request {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly raw?: IncomingMessage;
}
/** Its response. */
type Response = ServerResponse & { readonly raw?: ServerResponse; hijack?(): void };

interface Operator {
  readonly by: string | null;
  readonly mayRelease: () => Promise<boolean>;
}

/** Who has sent a request. */
const operators = new WeakMap<object, Operator>();

/** After the guards of the app, which know the user. */
@Injectable()
class DashboardGate implements CanActivate {
  constructor(@Inject(OPTIONS) private readonly options: DistributedLockDashboardOptions) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const action = request.method === 'POST' ? 'release' : 'view';
    const isPage = context.getHandler().name === 'page';
    const forgery = isPage ? undefined : forgeryIn(request.headers, request.method, this.options.origins);
    if (forgery !== undefined) throw new ForbiddenException(forgery);
    const verdict = await this.options.authorize(action, context);
    operators.set(request, {
      by: typeof verdict === 'object' ? verdict.by : null,
      mayRelease: async () => Boolean(await this.options.authorize('release', context)),
    });
    return Boolean(verdict);
  }
}

/** Answers by the adapter: an interceptor of the app that wraps what is returned would wrap the page. */
class DashboardController implements BeforeApplicationShutdown {
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
  page(@Res() response: Response): void {
    this.reply(response, page, PAGE_HEADERS);
  }

  @Get('events')
  async events(@Req() request: Request, @Res() response: Response): Promise<void> {
    const { by, mayRelease } = operators.get(request)!;
    const me = { by, mayRelease: await mayRelease().catch(() => false) };
    const begin = (): ServerResponse => {
      response.hijack?.();
      return response.raw ?? response;
    };
    await this.answered(async () => this.dashboard.stream(begin, me));
  }

  @Get('key')
  async key(@Req() { query }: Request, @Res() response: Response): Promise<void> {
    this.reply(response, await this.answered(() => this.dashboard.key(query.store, query.key)));
  }

  @Post('release')
  async release(@Req() request: Request, @Res() response: Response): Promise<void> {
    const body = await bodyOf(request);
    this.reply(response, await this.answered(() => this.dashboard.release(body, operators.get(request)!.by)));
  }

  @Post('hold')
  async hold(@Req() request: Request, @Res() response: Response): Promise<void> {
    const body = await bodyOf(request);
    this.reply(response, await this.answered(() => this.dashboard.hold(body, operators.get(request)!.by)));
  }

  /** An open stream would hold up the end of the app. */
  beforeApplicationShutdown(): void {
    this.made?.close();
  }

  private reply(response: Response, body: unknown, headers: Readonly<Record<string, string>> = { 'cache-control': 'no-store' }): void {
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

/** A page that shows what is locked, and by whom. It needs `DistributedLockModule`, and shows all stores of the app. */
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

/** Where the app parses no bodies, it is read here. */
async function bodyOf(request: Request): Promise<unknown> {
  if (request.body !== undefined && request.body !== null && !('pipe' in Object(request.body))) return request.body;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.raw ?? (request as unknown as IncomingMessage)) {
    length += (chunk as Buffer).length;
    if (length > LONGEST_BODY) throw new HttpException('The body is too long.', 413);
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new HttpException('The body must be JSON.', 400);
  }
}
