import type { Server, Take } from './server.js';

const UNSEEN = 60_000;

/** Keeps the stream open while the page is visible, and for a minute after. */
export function keepStream(server: Server, take: Take, isLive: (isLive: boolean, why?: string) => void): void {
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
    else close ??= server.open(take, isLive);
  };
  document.addEventListener('visibilitychange', look);
  // A page that the browser keeps for its back button must not hold a connection.
  addEventListener('pagehide', pause);
  addEventListener('pageshow', look);
  look();
}
