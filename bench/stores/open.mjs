/** A store by its name, at a server or in a directory. @param options more of those of Redis */
export async function openStore(name, place, options = {}) {
  switch (name) {
    case 'redis':
      return (await import('nestjs-distributed-lock/redis')).redisStore({ ...options, url: place });
    case 'redis cluster':
      return (await import('nestjs-distributed-lock/redis')).redisStore({ ...options, cluster: place });
    case 'postgres':
      return (await import('nestjs-distributed-lock/postgres')).postgresStore({ url: place, schema: 'create' });
    case 'mysql':
    case 'mysql-binlog':
      return (await import('nestjs-distributed-lock/mysql')).mysqlStore({ url: place, schema: 'create' });
    case 'etcd':
      return (await import('nestjs-distributed-lock/etcd')).etcdStore({ endpoints: [place] });
    case 'zookeeper':
      return (await import('nestjs-distributed-lock/zookeeper')).zookeeperStore({ connectionString: place });
    case 'file':
      return (await import('nestjs-distributed-lock/file')).fileStore({ directory: place });
    case 'quorum': {
      const stores = await Promise.all(place.split(',').map((url) => openStore('redis', url)));
      return (await import('nestjs-distributed-lock/quorum')).quorumStore(stores, { quarantine: 0 });
    }
    default:
      throw new Error(`No store ${name}`);
  }
}
