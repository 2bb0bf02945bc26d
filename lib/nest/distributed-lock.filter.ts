import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  HttpStatus,
  Inject,
  Injectable,
  InternalServerErrorException,
  Optional,
} from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockAbortedError, LockError, LockTimeoutError, QuorumError, StoreError } from '../core/errors.js';

/** Seconds. Long enough for most holds to end, short enough for a caller to stay. */
const RETRY_AFTER = '1';

/** What Express and Fastify responses have in common. */
interface HttpReply {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

interface WsClient {
  emit(event: string, body: unknown): unknown;
}

/**
 * Answers HTTP requests whose lock was not to be had: 423 where the key stayed taken, 503 where the store is out of reach or the app is
 * closing, both with `Retry-After`. Every other error goes on as without the filter.
 *
 * Opt in: `{ provide: APP_FILTER, useClass: LockExceptionFilter }`, `@UseFilters(LockExceptionFilter)` or
 * `app.useGlobalFilters(new LockExceptionFilter(app.get(HttpAdapterHost)))`.
 */
@Injectable()
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter {
  /** @param host Nest's; without it, an error that has no answer here is a bare 500. */
  constructor(@Optional() @Inject(HttpAdapterHost) private readonly host?: HttpAdapterHost) {}

  catch(error: LockError, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    if (type === 'rpc') return throwError(() => error);
    // As Nest's own filter does, which is in a package that not every app has.
    if (type === 'ws')
      return void host.switchToWs().getClient<WsClient>().emit('exception', { status: 'error', message: 'Internal server error' });
    // GraphQL and others have their own way with errors.
    if (type !== 'http') return error;
    const reply = host.switchToHttp().getResponse<HttpReply>();
    const answer = answerTo(error);
    if (answer && !reply.headersSent && !reply.sent) reply.header('Retry-After', RETRY_AFTER);
    if (this.host) new BaseExceptionFilter(this.host.httpAdapter).catch(answer ?? error, host);
    else send(reply, answer ?? new InternalServerErrorException(undefined, { cause: error }));
    return undefined;
  }
}

function send(reply: HttpReply, error: HttpException): void {
  reply.status(error.getStatus()).send(error.getResponse());
}

// The messages name no key: it may hold what a stranger must not see.
function answerTo(error: LockError): HttpException | undefined {
  if (error instanceof LockTimeoutError)
    return answer(HttpStatus.LOCKED, 'Locked', 'Another request is working on this. Try again.', error);
  const isClosing = error instanceof LockAbortedError && error.reason === 'shutdown';
  if (!isClosing && !(error instanceof StoreError) && !(error instanceof QuorumError)) return undefined;
  return answer(HttpStatus.SERVICE_UNAVAILABLE, 'Service Unavailable', 'Not available at the moment. Try again.', error);
}

function answer(statusCode: number, error: string, message: string, cause: LockError): HttpException {
  return new HttpException({ statusCode, error, message, code: cause.code }, statusCode, { cause });
}
