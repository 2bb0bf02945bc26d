import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** What a client reads in place of an answer of the server. */
export interface Lie {
  readonly name: string;
  /** @param answer of the server; without one where the client does not reach it */
  says(answer?: Buffer): Buffer;
  /** the client reaches no server */
  readonly isAlone?: boolean;
  /** the connection ends behind it */
  readonly closes?: boolean;
}

/** Stands before a server on a port of its own, and lies while `lie` is set. */
export async function startImpostor(to: number): Promise<Impostor> {
  const impostor = new Impostor(to);
  await impostor.listen();
  return impostor;
}

export class Impostor {
  lie: Lie | undefined;
  /** A connection over which a client sends this text gets no answer any more. */
  swallows: string | undefined;
  /** lies that were sent */
  told = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => this.#join(client));

  constructor(private readonly to: number) {}

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** Ends all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #join(client: Socket): void {
    this.#keep(client);
    if (this.lie?.isAlone) {
      this.#tell(client, this.lie);
      client.on('data', () => this.lie && this.#tell(client, this.lie));
      return;
    }
    const upstream = connect(this.to, '127.0.0.1');
    this.#keep(upstream);
    let isSilent = false;
    client
      .on('data', (bytes) => {
        isSilent ||= this.swallows !== undefined && bytes.includes(this.swallows);
        upstream.write(bytes);
      })
      .on('close', () => upstream.destroy());
    upstream
      .on('data', (bytes) => isSilent || (this.lie ? this.#tell(client, this.lie, bytes) : client.write(bytes)))
      .on('close', () => client.destroy());
  }

  #tell(client: Socket, { says, closes }: Lie, answer?: Buffer): void {
    this.told++;
    client.write(says(answer));
    if (closes) client.end();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket)); // 'close' follows an error
  }
}
