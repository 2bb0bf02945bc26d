import { WebSocket } from 'ws';
import { eventually } from '../support/eventually.js';

interface Message {
  id?: string;
  type: string;
  payload?: unknown;
}

/** One subscription over a connection of its own, by the protocol graphql-transport-ws. */
export class Subscriber {
  /** Values of the one field that is subscribed to. */
  readonly values: unknown[] = [];
  /** What the server has said in the place of values. */
  readonly errors: { message: string }[] = [];
  isComplete = false;
  /** The server has read the subscription. */
  isHeard = false;
  private readonly socket: WebSocket;

  constructor(url: string, query: string) {
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    const send = (message: Message) => this.socket.send(JSON.stringify(message));
    this.socket.on('open', () => send({ type: 'connection_init' }));
    this.socket.on('error', () => undefined);
    this.socket.on('message', (data: Buffer) => {
      const { type, payload } = JSON.parse(String(data)) as Message;
      if (type === 'connection_ack') {
        send({ id: '1', type: 'subscribe', payload: { query } });
        send({ type: 'ping' });
      }
      if (type === 'pong') this.isHeard = true;
      if (type === 'next') this.take(payload as { data?: object | null; errors?: { message: string }[] });
      if (type === 'error') this.errors.push(...(payload as { message: string }[]));
      if (type === 'complete') this.isComplete = true;
    });
  }

  /** Ends the subscription, and keeps the connection. The server knows when this is done. */
  async complete(): Promise<void> {
    this.isHeard = false;
    this.socket.send(JSON.stringify({ id: '1', type: 'complete' }));
    this.socket.send(JSON.stringify({ type: 'ping' }));
    await eventually(() => this.isHeard);
  }

  /** Goes without a word. */
  async terminate(): Promise<void> {
    this.socket.terminate();
  }

  /** Waits until so many values have come; returns them. */
  async received(count: number): Promise<unknown[]> {
    await eventually(() => this.values.length >= count);
    return this.values;
  }

  private take({ data, errors = [] }: { data?: object | null; errors?: { message: string }[] }): void {
    this.values.push(...Object.values(data ?? {}));
    this.errors.push(...errors);
  }
}
