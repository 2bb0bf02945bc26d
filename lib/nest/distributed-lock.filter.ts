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

/** Nest's HttpStatus has it from 11 on. */
const LOCKED = 423;

/** What Express and Fastify responses have in common. */
interface HttpReply {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

/** A socket of socket.io, or of ws: that one has an `emit` too, which only its own listeners hear. */
interface WsClient {
  readonly readyState?: number;
  emit(event: string, body: unknown): unknown;
  send(text: string): unknown;
}

/**
 * Answers requests whose lock was not to be had, without the key or its holder: over HTTP 423 where the key stayed taken, 503 where the store is
 * out of reach or the app is closing, both with `Retry-After`; over GraphQL the same as an error's extensions; over a microservice's transport
 * or a web socket `{ status: 'error', message, code }`. Every other error goes on as without the filter.
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
    const answer = answerTo(error);
    if (type === 'rpc') return throwError(() => messageOf(answer));
    if (type === 'ws') return void tell(host.switchToWs().getClient<WsClient>(), messageOf(answer));
    // A resolver that gives an error fails with it.
    if (type === 'graphql') return answer ?? error;
    if (type !== 'http') return error;
    const reply = host.switchToHttp().getResponse<HttpReply>();
    if (answer && !reply.headersSent && !reply.sent) reply.header('Retry-After', RETRY_AFTER);
    if (this.host) new BaseExceptionFilter(this.host.httpAdapter).catch(answer ?? error, host);
    else send(reply, answer ?? new InternalServerErrorException(undefined, { cause: error }));
    return undefined;
  }
}

/** In the form of Nest's own filters, which are in packages that not every app has. */
function messageOf(answer: HttpException | undefined): object {
  const body = answer?.getResponse() as { message: string; code: string } | undefined;
  return body ? { status: 'error', message: body.message, code: body.code } : { status: 'error', message: 'Internal server error' };
}

function tell(client: WsClient, data: object): void {
  if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data }));
  else client.emit('exception', data);
}

function send(reply: HttpReply, error: HttpException): void {
  reply.status(error.getStatus()).send(error.getResponse());
}

// The messages name no key: it may hold what a stranger must not see.
function answerTo(error: LockError): HttpException | undefined {
  if (error instanceof LockTimeoutError) return answer(LOCKED, 'Locked', 'Another request is working on this. Try again.', error);
  const isClosing = error instanceof LockAbortedError && error.reason === 'shutdown';
  if (!isClosing && !(error instanceof StoreError) && !(error instanceof QuorumError)) return undefined;
  return answer(HttpStatus.SERVICE_UNAVAILABLE, 'Service Unavailable', 'Not available at the moment. Try again.', error);
}

function answer(statusCode: number, error: string, message: string, cause: LockError): HttpException {
  return new HttpException({ statusCode, error, message, code: cause.code }, statusCode, { cause });
}
