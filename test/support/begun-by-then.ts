/** Work that begins when somebody calls its `then`, as a query of Prisma or Knex. */
export function begunByThen<T>(work: () => PromiseLike<T> | T): PromiseLike<T> {
  return { then: (done, failed) => Promise.resolve(work()).then(done, failed) };
}
