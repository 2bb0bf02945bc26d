import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { after } from '../../core/util/clock.js';
import { LockRegistry } from '../lock-registry.js';

/** Milliseconds. Many apps enable their shutdown hooks after they begin to listen, so the check waits. */
const GRACE = 1_000;

/** Logs once, at debug level, if a signal would end the process without releasing its locks: they would stay taken for a `keyTimeout`. */
@Injectable()
export class ShutdownAdvice implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;

  constructor(@Inject(LockRegistry) private readonly registry: LockRegistry) {}

  onApplicationBootstrap(): void {
    this.timer = after(GRACE, () => this.advise()).unref();
  }

  beforeApplicationShutdown(): void {
    clearTimeout(this.timer);
  }

  private advise(): void {
    if (process.listenerCount('SIGTERM') + process.listenerCount('SIGINT') > 0) return;
    this.registry.log(
      'debug',
      'Nothing listens to SIGTERM: locks that are held then stay taken for their keyTimeout. Call app.enableShutdownHooks() to have them drained and released.',
    );
  }
}
