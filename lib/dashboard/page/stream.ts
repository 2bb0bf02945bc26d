import type { Server, Take } from './server.js';

const UNSEEN = 60_000;

/** Keeps the stream of one store open while the page is visible, and for a minute after. Returns how to choose another store. */
export function keepStream(
  server: Server,
  store: string,
  take: Take,
  isLive: (isLive: boolean, why?: string) => void,
): (store: string) => void {
  let close: (() => void) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const pause = (): void => {
    close?.();
    close = undefined;
    isLive(false, 'paused');
  };
  const look = (): void => {
    clearTimeout(timer);
    if (document.visibilityState === 'hidden') timer = setTimeout(pause, UNSEEN);
    else close ??= server.open(store, take, isLive);
  };
  document.addEventListener('visibilitychange', look);
  // A page that the browser keeps for its back button must not hold a connection.
  addEventListener('pagehide', pause);
  addEventListener('pageshow', look);
  look();
  return (other) => {
    store = other;
    close?.();
    close = undefined;
    look();
  };
}
