import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import type { DoctorCheck } from '../../../core/model/doctor-report.js';
import { addressOf, bad, checksOf, isOlder, versionFinding, warning, type Finding } from '../../../core/store/store-doctor.js';
import { codeOf, NODE_EXISTS, PERSISTENT, type ZookeeperClient } from '../zookeeper.client.js';
import { ZookeeperSession } from '../zookeeper.session.js';

const OLDEST = '3.5';
/** The first of 3.8 and of 3.9 that keep what they have confirmed, one in between that does not, and the newest that our tests have seen keep it. */
const KEEPS = ['3.8.4', '3.9.2'] as const;
const FORGETS = '3.9.3';
const TESTED = '3.9.6';
/** A word that every server answers, unless it is forbidden. */
const WORD = 'srvr';
const PORT = 2181;
/** Characters of an answer. What another server says may have no end. */
const LONGEST = 65_536;

interface Inside {
  readonly servers?: readonly { readonly host: string; readonly port: number }[];
  readonly chrootPath?: string;
}

/** Examines the members by the word `srvr`, and by their configuration. */
export function zookeeperChecks(session: ZookeeperSession): Promise<DoctorCheck[]> {
  const { hosts, client, root } = session.target;
  const members = client ? [] : hosts.split(',');
  const answers = Promise.allSettled(members.map((host) => answerOf(host, session.requestTimeout)));
  const answered = async (): Promise<string[]> => {
    if (client) throw new Error('the hosts are those of your client');
    const texts = (await answers).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (texts.length === 0) throw ((await answers)[0] as PromiseRejectedResult).reason;
    if (texts.every((text) => /not in the whitelist/.test(text)))
      throw new Error(`the servers do not answer ${WORD}: 4lw.commands.whitelist=${WORD}`);
    return texts;
  };
  return checksOf({
    async location() {
      await session.data(root);
      const { servers, chrootPath = '' } = insideOf(client);
      const addresses = servers?.map(({ host, port }) => addressOf(host, port)) ?? members;
      if (addresses.length === 0) throw new Error('the hosts are those of your client');
      return { seen: `at ${addresses.sort().join(',')}, node ${chrootPath}${root}` };
    },
    async version() {
      const versions = (await answered()).flatMap((text) => /^Zookeeper version: ([\d.]+)/m.exec(text)?.[1] ?? []);
      if (versions.length === 0) throw new Error('no member serves requests');
      return versionsFinding(versions);
    },
    async role() {
      const ids = await Promise.allSettled((members.length > 1 ? members : []).map((host) => ensembleOf(host, session)));
      if (new Set(ids.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))).size > 1)
        return bad('hosts of different ensembles', 'Give the members of one ensemble only.', 'each ensemble would grant the same key');
      return roleOf(await answered(), members.length);
    },
    async replication() {
      const config = (await session.data('/zookeeper/config'))?.text ?? '';
      const voters = [...config.matchAll(/^server\.\d+=.*$/gm)].filter(([line]) => !/:observer/.test(line)).length;
      const isAlone = voters === 0 && !client && (await answered()).some((text) => /^Mode: standalone/m.test(text));
      if (voters === 0 && !isAlone) throw new Error('its configuration has no members');
      const seen = isAlone ? 'a standalone server' : `${voters} members vote`;
      return voters < 3 ? warning(seen, 'Run three or five members.', isAlone ? 'a lost disk loses all locks' : undefined) : { seen };
    },
  });
}

/** The text of a node that is made once. */
async function ensembleOf(host: string, { target, requestTimeout }: ZookeeperSession): Promise<string | undefined> {
  const session = new ZookeeperSession({ ...target, hosts: host }, requestTimeout);
  const path = `${target.root}/id`;
  try {
    const found = await session.data(path);
    if (found) return found.text;
    await session.make(target.root);
    // A member that is behind has seen the node after that, also if another one made it.
    await session.create(path, randomUUID(), PERSISTENT).catch((error: unknown) => {
      if (codeOf(error) !== NODE_EXISTS) throw error;
    });
    return (await session.data(path))?.text;
  } finally {
    void session.close();
  }
}

/** Where a client that is lent connects to. */
function insideOf(client: ZookeeperClient | undefined): Inside {
  return (client as { readonly connectionManager?: Inside } | undefined)?.connectionManager ?? {};
}

/** @param versions of the members. */
export function versionsFinding(versions: readonly string[]): Finding {
  const isForgetful = (version: string): boolean => isOlder(version, KEEPS[version.startsWith('3.9.') ? 1 : 0]) || version === FORGETS;
  const inOrder = [...versions].sort((a, b) => (isOlder(a, b) ? -1 : 1));
  const version = inOrder.find(isForgetful) ?? inOrder[0]!;
  if (isOlder(version, OLDEST) || !isForgetful(version)) return versionFinding('ZooKeeper', version, OLDEST);
  const because = 'confirmed writes are lost if members end one after the other (ZOOKEEPER-4643, 4785 and 4925)';
  return warning(
    `ZooKeeper ${version}`,
    `Upgrade to 3.8.4, 3.9.4 or later. Tests have seen writes lost on 3.8.0, and none on ${TESTED}.`,
    because,
  );
}

function roleOf(answers: readonly string[], members: number): Finding {
  const modes = answers.map((text) => /^Mode: (.*)$/m.exec(text)?.[1]);
  const serving = modes.filter((mode) => mode && mode !== 'read-only').length;
  if (serving === 0)
    return bad('a member without a quorum', 'Start the other members: more than half must run.', 'nothing can be written here');
  const seen = `${serving} of ${members} members serve requests; no clock of a server takes part`;
  return serving === members ? { seen } : warning(seen, 'Look at the members that do not answer, or have no quorum.');
}

function answerOf(host: string, timeout: number): Promise<string> {
  const [name = '', port = PORT] = host.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect({ host: name, port: Number(port) });
    let text = '';
    socket.setTimeout(timeout, () => socket.destroy(new Error(`${host} did not answer ${WORD} within ${timeout} ms`)));
    socket
      .setEncoding('utf8')
      .on('data', (part: string) => {
        text += part;
        if (text.length > LONGEST) socket.destroy(new Error(`${host} gave an answer to ${WORD} that is too long`));
      })
      .on('error', reject)
      .on('end', () => resolve(text));
    socket.end(WORD);
  });
}
