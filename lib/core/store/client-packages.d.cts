/** Packages of others that this one is used with, and the versions that the tests run on. npm may install any version beside this package. */
export const supported: Readonly<
  Record<'ioredis' | 'redis' | 'pg' | 'mysql2' | 'node-zookeeper-client' | 'prom-client' | '@opentelemetry/api', string>
>;

/** The version of the package that is loaded from here; `undefined`: it cannot be read, as in a bundle. */
export function installedVersion(name: string): string | undefined;
