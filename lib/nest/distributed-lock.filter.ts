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
import { LockAbortedError, LockError, LockTimeoutError, QuorumError, StoreError } from '../core/model/errors.js';

/** Seconds. Most locks are released by then, and most clients wait that long. */
const RETRY_AFTER = '1';

const LOCKED = 423; // Nest's HttpStatus has it only since version 11.

/** The methods that responses of Express and Fastify have in common. */
interface HttpReply {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  /** Express only. */
  end?(): unknown;
  status(code: number): { send(body: unknown): unknown };
}

/** A socket of socket.io or of ws. A ws socket also has an `emit`, but that only calls local listeners and sends nothing. */
interface WsClient {
  readonly readyState?: number;
  emit(event: string, body: unknown): unknown;
  send(text: string): unknown;
}

/**
 * Answers requests that did not get their lock. HTTP: 423 if the key was taken, 503 if the store cannot be reached or the app is closing, both
 * with `Retry-After`. GraphQL: the same in the extensions of the error. Microservices and web sockets: `{ status: 'error', message, code }`. The
 * answer contains neither the key nor its holder. All other errors are handled as without the filter.
 *
 * Opt in: `{ provide: APP_FILTER, useClass: LockExceptionFilter }`, `@UseFilters(LockExceptionFilter)` or
 * `app.useGlobalFilters(new LockExceptionFilter(app.get(HttpAdapterHost)))`.
 */
@Injectable()
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter {
  /** @param host Nest's adapter host. Without it, an error that this filter does not map is answered by a plain 500. */
  constructor(@Optional() @Inject(HttpAdapterHost) private readonly host?: HttpAdapterHost) {}

  catch(error: LockError, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    const answer = answerTo(error);
    if (type === 'rpc') return throwError(() => messageOf(answer));
    if (type === 'ws') return tell(host.switchToWs().getClient<WsClient>(), messageOf(answer));
    // For GraphQL an exception filter returns the error, and the resolver fails with it.
    if (type === 'graphql') return answer ?? error;
    if (type !== 'http') return error;
    const reply = host.switchToHttp().getResponse<HttpReply>();
    if (answer && !reply.headersSent && !reply.sent) reply.header('Retry-After', RETRY_AFTER);
    if (this.host) return new BaseExceptionFilter(this.host.httpAdapter).catch(answer ?? error, host);
    if (reply.headersSent || reply.sent) return void reply.end?.();
    const failure = answer ?? new InternalServerErrorException(undefined, { cause: error });
    return void reply.status(failure.getStatus()).send(failure.getResponse());
  }
}

/** The format of Nest's own filters for these transports. They are in packages that not every app has installed. */
function messageOf(answer: HttpException | undefined): object {
  const body = answer?.getResponse() as { message: string; code: string } | undefined;
  return body ? { status: 'error', message: body.message, code: body.code } : { status: 'error', message: 'Internal server error' };
}

function tell(client: WsClient, data: object): void {
  if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data }));
  else client.emit('exception', data);
}

// The messages do not contain the key, because it may contain data that the client must not see.
function answerTo(error: LockError): HttpException | undefined {
  if (error instanceof LockTimeoutError) return answer(LOCKED, 'Locked', 'Another request is working on this. Try again.', error);
  const isClosing = error instanceof LockAbortedError && error.reason === 'shutdown';
  if (!isClosing && !(error instanceof StoreError) && !(error instanceof QuorumError)) return undefined;
  return answer(HttpStatus.SERVICE_UNAVAILABLE, 'Service Unavailable', 'Not available at the moment. Try again.', error);
}

function answer(statusCode: number, error: string, message: string, cause: LockError): HttpException {
  return new HttpException({ statusCode, error, message, code: cause.code }, statusCode, { cause });
}
