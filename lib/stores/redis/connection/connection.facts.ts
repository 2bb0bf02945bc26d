import type { StoreError } from '../../../core/model/errors.js';
import { type RedisClient, resentsUnknownScripts } from './redis.client.js';
import { strayed } from './redis.errors.js';

/** Knowledge of the server behind one connection. It says nothing of the next one, which may lead to another server. */
export class ConnectionFacts {
  /** Set once the server is known as one node of several: some keys would be granted by luck. */
  misled: StoreError | undefined;
  /** Whether the client of an app ends the connection because the server said so. */
  isMisledNextTime = false;
  /** Set while the connection is in another database than the one that was chosen, where other apps may be: nothing is done there. */
  astray: StoreError | undefined;
  /** Whether it has answered anything over this connection or one before: it is a Redis. */
  hasAnswered = false;
  /** Whether it was decided to end a silent connection, or to replace its client. */
  isDecided = false;
  private isChecked = false;
  /** The database that the server has reported. */
  private reported: number | undefined;
  /** Whether the text of a script has to be sent, by the node and the hash: the node does not know it, or has answered it. */
  private readonly whole = new Map<string, boolean>();
  /** Since when nodes that were asked have answered nothing; `undefined`: they have. */
  private readonly silences = new Map<string, number | undefined>();

  /** A script is sent whole until it was answered; else by its hash until the server does not know it. */
  private readonly isTextFirst: boolean;

  constructor(private readonly client: RedisClient) {
    this.isTextFirst = resentsUnknownScripts(client);
  }

  /** @returns those of the next connection, or of a Cluster that has lost a node. */
  ofNext(): ConnectionFacts {
    const next = new ConnectionFacts(this.client);
    if (this.isMisledNextTime) next.misled = this.misled;
    next.hasAnswered = this.hasAnswered;
    next.reported = this.reported;
    return next;
  }

  /** The database of the connection. A client of node-redis goes back to the one that its app has selected. `undefined`: nobody has reported it. */
  get database(): number | undefined {
    return this.client.condition?.select ?? this.reported;
  }

  /** @returns whether to send the text of the script. */
  asked(node: string, sha: string | undefined, at: number): boolean {
    if (this.silences.get(node) === undefined) this.silences.set(node, at);
    return sha !== undefined && (this.whole.get(node + sha) ?? this.isTextFirst);
  }

  /** @param sha of the script whose text it has by that. */
  answered(node: string, sha?: string): void {
    this.hasAnswered = true;
    this.silences.set(node, undefined);
    if (sha !== undefined) this.whole.set(node + sha, false);
  }

  forgot(node: string, sha: string): void {
    this.whole.set(node + sha, true);
  }

  /** Once: the end of a half open connection may take ioredis two seconds, in which it adds a listener each time that it is asked. */
  endSilent(): void {
    if (!this.isDecided) this.client.disconnect(true);
    this.isDecided = true;
  }

  silentSince(node: string): number | undefined {
    return this.silences.get(node);
  }

  /**
   * A lent client of ioredis goes on where its SELECT has failed, and one of node-redis hides what the app has selected. What is asked is answered before
   * the request behind it.
   */
  checkDatabase(): void {
    const { client } = this;
    if (this.isChecked) return;
    this.isChecked = true;
    const chosen = client.condition?.select;
    if (client.isCluster || chosen === 0) return;
    const check = (info: unknown): void => {
      const [, db] = /\bdb=(\d+)/.exec(String(info)) ?? [];
      if (db === undefined) return;
      this.reported = Number(db);
      if (chosen !== undefined) this.astray = strayed(chosen, this.reported);
    };
    client.call('CLIENT', 'INFO').then(check, () => undefined);
  }
}
