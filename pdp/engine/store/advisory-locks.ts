/** The numbers of all advisory locks in PostgreSQL, so that no two things use one. A lock counts within its database. */
export const ADVISORY_LOCKS = {
  migrations: '4183927456012387461',
  /** One node at a time removes what is no longer kept. */
  retention: '4702916384',
  /** One node at a time makes or changes signing keys. */
  signingKeys: '7079882305114',
  /** The process that runs an embedded cluster; in its database `postgres`. */
  clusterOwner: '7079882305113',
} as const
