import type { WakeUps } from '../../core/store/lease-driver.js';

/** Within a process a callback is all it takes. */
export class MemoryWakeUps implements WakeUps {
  readonly isOpen = true;
  private readonly listeners = new Map<string, (askIn?: number) => void>();

  open(): Promise<void> {
    return Promise.resolve();
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => void this.listeners.delete(owner);
  }

  /** Later, as a message would come: not in the midst of a step. */
  wake(owner: string, askIn?: number): void {
    queueMicrotask(() => this.listeners.get(owner)?.(askIn));
  }
}
