import { chownSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseServer, unprivileged } from './database-process.js';
import { freePort, startOnPort } from './free-port.js';
import { programOf } from './services.js';

export interface StartZookeeperOptions {
  /** more lines of `zoo.cfg`, for example `['enforceQuota=true']` */
  config?: string[];
  /** a word of four letters that it answers; default: `srvr` */
  word?: string;
  /** a write reaches the disk before it answers, as in production; default: only the system, which is faster and survives `kill` */
  durable?: boolean;
}

/** Ports of a member: for clients, for followers, and for elections. */
type Ports = readonly [client: number, quorum: number, election: number];

/** A private server of one member: nobody else uses it, and it ends with this process, however this process ends. */
export async function startZookeeper(options: StartZookeeperOptions = {}): Promise<ZookeeperServer> {
  const program = await programOf('zookeeper');
  return startOnPort('free', (port) => new ZookeeperServer(program, [[port!, 0, 0]], 0, options));
}

/** Three members. */
export async function startZookeeperCluster(options: StartZookeeperOptions = {}): Promise<ZookeeperServer[]> {
  const program = await programOf('zookeeper');
  const all: Ports[] = [];
  for (let index = 0; index < 3; index++) all.push([await freePort(), await freePort(), await freePort()]);
  const members = all.map((_ports, index) => new ZookeeperServer(program, all, index, options));
  await Promise.all(members.map((member) => member.start()));
  return members;
}

/** A member. */
export class ZookeeperServer extends DatabaseServer {
  readonly port: number;
  private readonly word: string;
  readonly data = join(this.folder, 'data');

  constructor(
    script: string,
    all: readonly Ports[],
    index: number,
    { config = [], durable = false, word = 'srvr' }: StartZookeeperOptions,
  ) {
    super('zookeeper', 'java');
    this.port = all[index]![0];
    this.word = word;
    const servers = all.map(([, quorum, election], id) => `server.${id + 1}=127.0.0.1:${quorum}:${election}`);
    const lines = [
      // Sessions and quorums notice within a second or two.
      ...['tickTime=500', 'initLimit=20', 'syncLimit=4', 'admin.enableServer=false', 'maxClientCnxns=0'],
      ...[`dataDir=${this.data}`, `clientPort=${this.port}`, 'clientPortAddress=127.0.0.1'],
      ...(all.length > 1 ? servers : []),
      ...config,
    ];
    mkdirSync(this.data);
    writeFileSync(join(this.data, 'myid'), String(index + 1));
    if (unprivileged) chownSync(this.data, unprivileged.uid, unprivileged.gid);
    writeFileSync(join(this.folder, 'zoo.cfg'), lines.join('\n'));
    // Debian's writes its log by the first, Apache's own by the second.
    writeFileSync(join(this.folder, 'log4j.properties'), LOG4J);
    writeFileSync(join(this.folder, 'logback.xml'), LOGBACK);
    this.args = [
      ...['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Djava.net.preferIPv4Stack=true'],
      ...(durable ? [] : ['-Dzookeeper.forceSync=no']),
      ...['-cp', [this.folder, ...jarsOf(script)].join(':')],
      ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(this.folder, 'zoo.cfg')],
    ];
  }

  get connectionString(): string {
    return `127.0.0.1:${this.port}`;
  }

  async leads(): Promise<boolean> {
    return /^Mode: leader/m.test(await fourLetters(this.port, 'srvr').catch(() => ''));
  }

  /** such as `3.9.6` */
  async version(): Promise<string> {
    return /^Zookeeper version: ([\d.]+)/m.exec(await fourLetters(this.port, 'srvr'))![1]!;
  }

  /** It serves requests: alone, or as a member of a quorum. */
  protected async ready(): Promise<boolean> {
    return /^(Mode: |imok)/m.test(await fourLetters(this.port, this.word));
  }
}

/** Debian keeps the jars in a folder of all programs, which ZooKeeper's own one names. So that one is the last: they may be of another version. */
function jarsOf(script: string): string[] {
  const lib = join(dirname(dirname(realpathSync(script))), 'lib');
  if (!existsSync(lib)) return ['/usr/share/java/zookeeper.jar'];
  const isOwn = (jar: string): boolean => /^zookeeper(-\d.*)?\.jar$/.test(jar);
  const jars = readdirSync(lib).filter((jar) => jar.endsWith('.jar'));
  return [...jars.filter((jar) => !isOwn(jar)), ...jars.filter(isOwn)].map((jar) => join(lib, jar));
}

const LOG4J = `log4j.rootLogger=WARN, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%p %c{1} %m%n
`;
const LOGBACK = `<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%p %c{1} %m%n</pattern></encoder></appender>
  <root level="WARN"><appender-ref ref="CONSOLE" /></root>
</configuration>
`;

/** The answer to a word such as `srvr`. */
function fourLetters(port: number, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.setEncoding('utf8').setTimeout(1000, () => socket.destroy(new Error(`${word} was not answered`)));
    socket
      .on('data', (text: string) => (answer += text))
      .once('error', reject)
      .once('end', () => resolve(answer));
    socket.write(word);
  });
}
