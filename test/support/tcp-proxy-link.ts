import type { Socket } from 'node:net';
import type { Framing } from './tcp-proxy-framing.js';

/** What happens to bytes on their way in one direction. */
export interface Way {
  drop: boolean;
  /** milliseconds */
  delay: number;
  jitter: number;
  /** what is due waits until this ends, except for what nobody has asked for */
  isHeld: boolean;
  /** requests or replies that did not arrive */
  lost: number;
}

/** Waits for a request whose reply is to be lost. */
export interface Trap {
  matches(request: Buffer): boolean;
  times: number;
  then: 'reset' | 'silence';
  lost: number;
}

export interface Traffic {
  requests: Way;
  replies: Way;
  traps: Trap[];
}

/** One client's connection through the proxy. */
export class ProxyLink {
  readonly #requests: Pipe;
  readonly #replies: Pipe;
  /** for each request that the server has yet to answer, the trap that it stepped into, if any */
  readonly #unanswered: (Trap | undefined)[] = [];

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly traffic: Traffic,
    onGone: () => void,
    random: () => number,
    private readonly framing: Framing,
  ) {
    this.#requests = new Pipe(
      client,
      upstream,
      () => traffic.requests,
      (frame) => this.#onRequest(frame),
      random,
      framing.endOfRequest,
      () => false,
    );
    this.#replies = new Pipe(
      upstream,
      client,
      () => traffic.replies,
      (frame) => this.#onReply(frame),
      random,
      framing.endOfReply,
      (frame) => framing.isPush(frame),
    );
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined); // 'close' follows
      socket.once('close', () => client.destroyed && upstream.destroyed && onGone());
    }
  }

  get open(): boolean {
    return !this.client.destroyed;
  }

  /** It has lost bytes, so what comes later would not be what the client thinks. */
  get damaged(): boolean {
    return this.#requests.broken || this.#replies.broken;
  }

  silence(): void {
    this.#requests.broken = this.#replies.broken = true;
  }

  reset(): void {
    this.#requests.stop();
    this.#replies.stop();
    this.client.resetAndDestroy();
    this.upstream.destroy();
  }

  /** What was held back goes on. */
  goOn(): void {
    this.#requests.deliverDue();
    this.#replies.deliverDue();
  }

  /** The server still gets what the client has sent, when it is due. */
  resetClient(): void {
    this.client.resetAndDestroy();
  }

  #onRequest(frame: Buffer): boolean {
    if (this.framing.isAnswered?.(frame) === false) return true;
    const trap = this.traffic.traps.find(({ times, matches }) => times > 0 && matches(frame));
    if (trap) trap.times--;
    this.#unanswered.push(trap);
    return true;
  }

  #onReply(frame: Buffer): boolean {
    const trap = this.framing.isPush(frame) ? undefined : this.#unanswered.shift();
    if (!trap || !this.traffic.traps.includes(trap)) return true;
    trap.lost++;
    if (trap.then === 'reset') this.reset();
    return false;
  }
}

/** One direction of a link: whole frames, in order. */
class Pipe {
  /** a frame was lost, so none that follows is forwarded */
  broken = false;
  #partial: Buffer = Buffer.alloc(0);
  #queue: { due: number; isPush: boolean; deliver: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    source: Socket,
    private readonly sink: Socket,
    private readonly way: () => Way,
    /** answers whether to forward it */
    private readonly onFrame: (frame: Buffer) => boolean,
    private readonly random: () => number,
    private readonly endOfFrame: (bytes: Buffer) => number,
    private readonly isPush: (frame: Buffer) => boolean,
  ) {
    source.on('data', (bytes: Buffer) => this.#onBytes(bytes));
    source.once('close', (failed: boolean) => this.#enqueue(false, () => this.#end(failed)));
  }

  stop(): void {
    this.broken = true;
    this.#queue = [];
    clearTimeout(this.#timer);
  }

  #onBytes(bytes: Buffer): void {
    this.#partial = Buffer.concat([this.#partial, bytes]);
    for (let end = this.endOfFrame(this.#partial); end > 0; end = this.endOfFrame(this.#partial)) {
      const frame = this.#partial.subarray(0, end);
      this.#partial = this.#partial.subarray(end);
      this.#enqueue(this.isPush(frame), () => this.#forward(frame));
    }
  }

  #forward(frame: Buffer): void {
    if (this.way().drop) this.broken = true;
    if (!this.broken && this.onFrame(frame)) {
      this.sink.write(frame);
    } else {
      this.broken = true;
      this.way().lost++;
    }
  }

  #end(failed: boolean): void {
    if (this.way().drop) this.broken = true;
    if (this.broken) return;
    if (failed) this.sink.destroy();
    else this.sink.end();
  }

  #enqueue(isPush: boolean, deliver: () => void): void {
    const { delay, jitter } = this.way();
    const before = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ due: Math.max(before, performance.now() + delay + this.random() * jitter), isPush, deliver });
    this.deliverDue();
  }

  deliverDue(): void {
    clearTimeout(this.#timer);
    const { isHeld } = this.way();
    const isFree = ({ due, isPush }: { due: number; isPush: boolean }): boolean => due <= performance.now() && (isPush || !isHeld);
    for (let index = this.#queue.findIndex(isFree); index >= 0; index = this.#queue.findIndex(isFree)) {
      this.#queue.splice(index, 1)[0]!.deliver();
    }
    const next = this.#queue[0];
    if (next && !isHeld) this.#timer = setTimeout(() => this.deliverDue(), next.due - performance.now());
  }
}
