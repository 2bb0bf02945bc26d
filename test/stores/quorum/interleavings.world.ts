import { createHash } from 'node:crypto';
import { QuorumError, StoreError } from '../../../lib/core/model/errors.js';
import type { AcquireReply, Tenancy } from '../../../lib/core/store/lease-driver.js';
import { QuorumDriver } from '../../../lib/stores/quorum/quorum.driver.js';
import { Member } from '../../../lib/stores/quorum/quorum.member.js';
import type { World } from '../records/model/explore.js';
import { clock, quiet } from '../records/model/stopped-clock.js';
import { Server, storeOn, TTL, type Exchange, type Scenario, type Verb, type Word } from './interleavings.server.js';

const KEY = 'key';
const MEMBER_TIMEOUT = 1_000;
const MAJORITY = 2;
/** Requests of one acquire at most: the members are asked, and some of them again to record the token. */
const MOST_ASKED = 9;
const LOST = new StoreError('The connection was lost.', { transient: true });

/** An owner, and its process. */
class Owner {
  done = 0;
  verb: string | undefined;
  /** When the lease ends that it was told of; 0: it has none. */
  validUntil = 0;
  /** Requests of its acquire. */
  asked = 0;
  hasHeld = false;
  isOver = false;
  /** What it was told, and what each member told its process, since nothing was under way. */
  told: string[] = [];
  heard: string[][] = [[], [], []];
  /** Members that may not have got its last word. */
  readonly unaware = new Set<number>();
  readonly driver: QuorumDriver;

  constructor(
    readonly id: string,
    readonly script: string,
    quarantine: number,
    stores: readonly ReturnType<typeof storeOn>[],
  ) {
    const members = stores.map((store, index) => new Member(store, `member ${index + 1}`, quarantine, () => undefined));
    // No time for a second round: scripts ask again.
    const setting = { members, memberTimeout: MEMBER_TIMEOUT, requestTimeout: 2 * MEMBER_TIMEOUT, longestLease: quarantine || Infinity };
    this.driver = new QuorumDriver(setting, 'mutex');
  }
}

/** Owners of several processes that want one key of three members. The scheduler chooses who asks, and which member answers whom. */
export class QuorumWorld implements World {
  private readonly servers: readonly Server[];
  private readonly owners: Owner[] = [];
  private readonly exchanges: Exchange[] = [];
  private readonly left: { restarts: number; failures: number; passes: number[]; jumps: number[] };
  /** The rounds of renewals in which a member told an owner that it had lost its lease. */
  private readonly losses = new Map<string, readonly Word[]>();
  private lastToken = 0;
  private round: Word[] | undefined;
  private broken: Error | undefined;

  constructor(private readonly scenario: Scenario) {
    const { restarts = 0, passes = [], failures = 0, jumps = [], clocks = [0, 0, 0] } = scenario;
    this.left = { restarts, failures, passes: [...passes], jumps: [...jumps] };
    clock.reset();
    this.servers = clocks.map((lead) => new Server(lead));
    for (const script of scenario.owners) this.add(script);
  }

  actions(): string[] {
    const { restarts, passes, failures } = this.left;
    const actions: string[] = [];
    for (const [index, owner] of this.owners.entries()) if (owner.verb === undefined && this.nextStep(owner)) actions.push(`asks ${index}`);
    for (const [index, { reply }] of this.exchanges.entries()) {
      actions.push(`${this.scenario.isSplit && reply === undefined ? 'arrives' : 'answers'} ${index}`);
      if (failures > 0) actions.push(`fails ${index}`);
    }
    if (actions.length === 0) return [];
    if (passes.length > 0) actions.push('passes');
    if (this.mayJump()) actions.push('jumps');
    if (restarts > 0) actions.push(...this.servers.map((_, index) => `restarts ${index}`));
    return actions;
  }

  async act(action: string): Promise<void> {
    const [verb, name] = action.split(' ') as [string, string];
    const index = Number(name);
    if (verb === 'asks') this.ask(this.owners[index]!);
    else if (verb === 'passes') {
      clock.pass(this.left.passes.shift()!);
    } else if (verb === 'jumps') {
      this.servers[0]!.jump(this.left.jumps.shift()!);
    } else if (verb === 'restarts') {
      this.left.restarts--;
      this.servers[index]!.restart();
    } else if (verb === 'arrives') this.arrive(this.exchanges[index]!);
    else this.finish(this.exchanges[index]!, verb === 'fails');
    await quiet();
    this.checkHolders();
    if (this.broken) throw this.broken;
    for (const owner of this.owners) if (this.isQuiet(owner)) this.forget(owner);
  }

  check(): void {
    this.checkHolders();
    for (const owner of this.owners) {
      const { id, hasHeld, isOver, unaware } = owner;
      // What a loss leaves behind goes with the release.
      if (!this.isQuiet(owner) || (hasHeld && !isOver)) continue;
      const index = this.servers.findIndex(({ holder }, number) => holder === id && !unaware.has(number));
      if (index >= 0) throw new Error(`${id} ${isOver ? 'has ended' : 'was refused'}, and member ${index} still has it`);
    }
  }

  private checkHolders(): void {
    const holders = this.owners.filter(({ validUntil }) => validUntil > clock.time);
    if (holders.length > 1) throw new Error(`${holders.map(({ id }) => id).join(' and ')} hold the key at the same time`);
  }

  /** The members are alike, but for their clocks, and but for the first one if that may jump. */
  state(): string {
    const { servers, owners, exchanges } = this;
    const members = servers.map((server, member) => {
      const open = exchanges
        .filter((each) => each.member === member)
        .map(({ verb, request, reply, round }) => [verb, request, reply, renewed(round)]);
      const own = owners.map(({ id, heard, unaware }) => [heard[member], unaware.has(member), renewed(this.losses.get(`${id} ${member}`))]);
      return JSON.stringify([server.state(), open, own, this.left.jumps.length > 0 && member === 0]);
    });
    const known = owners.map(({ driver, done, verb, validUntil, asked, hasHeld, isOver, told }) => {
      const { leases, ballots } = driver as unknown as { leases: { leases: Map<string, unknown> }; ballots: { lead: number } };
      return [done, verb, validUntil, asked, hasHeld, isOver, told, [...leases.leases], ballots.lead];
    });
    const text = JSON.stringify([clock.time, this.left, members.sort(), known, this.lastToken]);
    return createHash('sha1').update(text).digest('base64');
  }

  /** Whoever comes last gets the key. */
  async end(): Promise<void> {
    clock.pass(2 * TTL);
    await quiet();
    const stranger = this.add('A');
    await this.act(`asks ${this.owners.indexOf(stranger)}`);
    while (this.exchanges.length > 0) {
      this.finish(this.exchanges[0]!, false);
      await quiet();
    }
    if (this.broken) throw this.broken;
    if (stranger.validUntil === 0) throw new Error('a stranger does not get the key at the end');
  }

  private add(script: string): Owner {
    const { quarantine = TTL, remembers } = this.scenario;
    const id = `o${this.owners.length}`;
    const stores = this.servers.map((server, member) => {
      const store = storeOn(server, (verb, request) => this.sent(verb, member, request));
      return remembers ? { ...store, remembers } : store;
    });
    const owner = new Owner(id, script, quarantine, stores);
    this.owners.push(owner);
    return owner;
  }

  /** Who has the vote of each member. */
  holders(): (string | undefined)[] {
    return this.servers.map(({ holder }) => holder);
  }

  private mayJump(): boolean {
    const { jumpsAt } = this.scenario;
    if (this.left.jumps.length === 0 || (jumpsAt && this.exchanges.length > 0)) return false;
    const holders = this.owners.filter(({ validUntil }) => validUntil > clock.time);
    return jumpsAt !== 'all votes' || holders.every(({ id }) => this.servers.every(({ holder }) => holder === id));
  }

  /** It has asked for nothing that is not answered, by any member. */
  private isQuiet({ id, verb }: Owner): boolean {
    return verb === undefined && !this.exchanges.some(({ owner }) => owner === id);
  }

  /** What nothing depends on any more. */
  private forget(owner: Owner): void {
    owner.told = [];
    owner.heard = [[], [], []];
    for (const member of this.servers.keys()) this.losses.delete(`${owner.id} ${member}`);
  }

  private nextStep(owner: Owner): string | undefined {
    const next = (): string => owner.script[owner.done] ?? '';
    const isHeld = owner.validUntil > clock.time;
    while ((owner.hasHeld && next() === 'A') || (!isHeld && next() === 'N')) owner.done++;
    return next() || undefined;
  }

  private ask(owner: Owner): void {
    const { id, driver } = owner;
    const step = this.nextStep(owner)!;
    const sentAt = clock.time;
    const tenancy = { key: KEY, owner: id };
    owner.verb = step;
    owner.asked = 0;
    if (step === 'A') {
      const request = { ...tenancy, ttl: TTL, tokens: 1, queue: false };
      return this.settled(owner, driver.acquire(request), (reply) => reply.granted && this.granted(owner, reply, sentAt + TTL));
    }
    if (step === 'N') {
      const round = (this.round = []);
      const [renewal] = driver.renew([{ ...tenancy, ttl: TTL }]);
      this.round = undefined;
      return this.settled(owner, renewal!, (reply) => this.renewed(owner, reply, round, sentAt + TTL));
    }
    owner.validUntil = 0;
    const end: Promise<unknown> = owner.hasHeld ? driver.release({ ...tenancy, keepFor: 0 }) : driver.leave(tenancy);
    this.settled(owner, end, () => (owner.isOver = true));
  }

  private settled<T>(owner: Owner, request: Promise<T>, answered: (reply: T) => unknown): void {
    const over = (word: string): void => {
      if (owner.verb === 'R') owner.isOver = true;
      owner.verb = undefined;
      owner.done++;
      owner.told.push(`${word} at ${clock.time}`);
    };
    request.then(
      (reply) => {
        over(JSON.stringify(reply) ?? '');
        answered(reply);
      },
      (error: Error) => {
        over(error.name);
        if (!(error instanceof QuorumError)) this.fail(String(error.stack));
      },
    );
  }

  private granted(owner: Owner, { token }: AcquireReply & { granted: true }, validUntil: number): void {
    if (token! <= this.lastToken) this.fail(`${owner.id} gets the token ${token}, and ${this.lastToken} was given before`);
    this.lastToken = token!;
    owner.hasHeld = true;
    owner.validUntil = validUntil;
  }

  private renewed(owner: Owner, reply: 'renewed' | 'lost', round: readonly Word[], validUntil: number): void {
    const count = renewed(round);
    if (reply === 'renewed' && count < MAJORITY) this.fail(`${owner.id} is renewed by ${count} members`);
    // What has ended does not come back: the engine sees to that.
    owner.validUntil = reply === 'renewed' && owner.validUntil > clock.time ? Math.max(owner.validUntil, validUntil) : 0;
  }

  private sent(verb: Verb, member: number, request: Tenancy): Promise<Word> {
    const { owner } = request;
    const asker = this.owners.find(({ id }) => id === owner)!;
    // One that has granted it may be asked once more to record the token.
    if (verb === 'acquire' && asker.verb !== 'A' && this.servers[member]!.holder !== owner) {
      const round = this.losses.get(`${owner} ${member}`);
      if (round && renewed(round) < MAJORITY) this.fail(`${owner} takes the key again at member ${member}, and no majority has renewed`);
    }
    if (verb === 'acquire' && ++asker.asked > MOST_ASKED) this.fail(`${owner} asks again and again`);
    return new Promise((resolve, reject) => {
      this.exchanges.push({ verb, owner, member, request, round: this.round, resolve, reject });
    });
  }

  private arrive(exchange: Exchange): void {
    const { verb, member, request } = exchange;
    const server = this.servers[member]!;
    exchange.reply = this.scenario.serve ? this.scenario.serve(server, verb, request) : server.serve(verb, request);
  }

  /** The exchange is answered, or its request or reply is lost. */
  private finish(exchange: Exchange, fails: boolean): void {
    const { verb, owner: id, member, round } = exchange;
    const owner = this.owners.find((each) => each.id === id)!;
    this.exchanges.splice(this.exchanges.indexOf(exchange), 1);
    if (fails) {
      this.left.failures--;
      if (exchange.reply === undefined && (verb === 'leave' || verb === 'release')) owner.unaware.add(member);
      owner.heard[member]!.push(`${verb} failed at ${clock.time}`);
      return exchange.reject(LOST);
    }
    if (exchange.reply === undefined) this.arrive(exchange);
    const reply = exchange.reply!;
    round?.push(reply);
    if (round && reply === 'lost') this.losses.set(`${id} ${member}`, round);
    owner.heard[member]!.push(`${verb} ${JSON.stringify(reply)} at ${clock.time}`);
    exchange.resolve(reply);
  }

  private fail(message: string): void {
    this.broken ??= new Error(message);
  }
}

/** How many members have renewed in this round. */
function renewed(round: readonly Word[] = []): number {
  return round.filter((word) => word === 'renewed').length;
}
