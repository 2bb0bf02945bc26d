import { versionsFinding } from '../../lib/stores/zookeeper/operate/zookeeper.doctor.js';

it.each(['3.8.4', '3.8.6', '3.9.2', '3.9.4', '3.10.0', '4.0.1'])('ZooKeeper %s keeps what it has confirmed', (version) => {
  expect(versionsFinding([version])).toEqual({ seen: `ZooKeeper ${version}` });
});

it.each(['3.5.10', '3.8.0', '3.8.3', '3.9.0', '3.9.1', '3.9.3'])('ZooKeeper %s is not fit for correctness', (version) => {
  const advice = expect.stringContaining('lost on 3.8.0, and none on 3.9.6');
  const forgetful = { state: 'warn', seen: `ZooKeeper ${version}`, advice, limits: { purpose: 'correctness' } };
  expect(versionsFinding([version])).toMatchObject(forgetful);
  expect(versionsFinding(['3.8.4', version, '3.9.4'])).toMatchObject(forgetful);
});

it('ZooKeeper 3.4 is too old, whatever the others are', () => {
  expect(versionsFinding(['3.9.4', '3.4.14', '3.8.0'])).toMatchObject({ state: 'bad', seen: 'ZooKeeper 3.4.14' });
});
