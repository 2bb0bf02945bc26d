import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { PlainClient } from '../connection/node-redis.client.js';

/** The byte by which RESP 3 names a map. Text is text and a number is a number where nothing else is said. */
const MAP = 37;

/** One client of one server: what it may send, and when its connection breaks. */
export class NodeRedisLink {
  private unsent = abortController();
  private wasReady = false;
  /** It has been connected before, and somebody may have asked for something while it was not. */
  private hasBroken = false;
  private isSuspect = false;

  /** @param emit the events of ioredis: `ready`, `close` once when a connection that was ready breaks, `end`, with an error if it has given up, and `error`. */
  constructor(
    readonly client: PlainClient,
    private readonly emit: (event: 'ready' | 'close' | 'end' | 'error', error?: unknown) => void,
  ) {}

  get isReady(): boolean {
    return this.client.isReady && !this.isSuspect;
  }

  /**
   * Sends now, or not at all. By itself node-redis keeps what it could not send, and sends it to the next connection: then a request would arrive whose
   * caller has been answered long since. Version 5 can even give such a request the reply to another one.
   */
  send(args: readonly string[]): Promise<unknown> {
    if (!this.isReady) return Promise.reject(new Error('The connection to Redis is not ready.'));
    return this.sendAnyhow(args);
  }

  /** The returned function stops. */
  watch(): () => void {
    const { client } = this;
    this.wasReady = client.isReady;
    // What has happened since it was watched last is not known.
    if (this.hasBroken && client.isReady) void this.verify();
    client.on('ready', this.onReady);
    client.on('error', this.onError);
    client.on('end', this.onEnd);
    return () => {
      client.off('ready', this.onReady);
      client.off('error', this.onError);
      client.off('end', this.onEnd);
      this.hasBroken = true;
    };
  }

  private sendAnyhow(args: readonly string[]): Promise<unknown> {
    return this.client.sendCommand(args, optionsFor(this.unsent.signal));
  }

  private readonly onReady = (): void => {
    this.wasReady = true;
    if (this.hasBroken) void this.verify();
    else this.emit('ready');
  };

  private readonly onError = (error: unknown): void => {
    this.emit('error', error);
    if (!this.client.isReady) this.broke();
    if (!this.client.isOpen) this.emit('end', error);
  };

  private readonly onEnd = (): void => {
    this.broke();
    this.emit('end');
  };

  private broke(): void {
    if (!this.wasReady) return;
    this.wasReady = false;
    this.hasBroken = true;
    this.unsent.abort();
    this.unsent = abortController();
    this.emit('close');
  }

  /**
   * Version 5 gives the first reply of the next connection to what the app asked for as the last one broke, the second reply to its next request, and so on.
   * Our requests would be granted what is meant for others: such a connection is not used.
   */
  private async verify(): Promise<void> {
    const { signal } = this.unsent;
    const sent = randomUUID();
    this.isSuspect = true;
    const reply = await this.sendAnyhow(['EVAL', 'return ARGV[1]', '0', sent]).catch((error: unknown) => error);
    if (signal.aborted) return;
    if (reply === sent || reply instanceof Error) {
      this.isSuspect = false;
      this.emit('ready');
    } else this.emit('error', new Error('node-redis gives the replies of other requests since its connection broke: connect it again.'));
  }
}

/** node-redis listens to the signal once for each request that is under way. */
function abortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** The settings of its owner do not change what we send and get. */
function optionsFor(abortSignal?: AbortSignal): object {
  return { abortSignal, typeMapping: { [MAP]: Array }, asap: false, timeout: undefined };
}
