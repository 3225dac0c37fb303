/** The numbers of all advisory locks in PostgreSQL, in one place so that each is used once. A lock counts within its database. */
export const ADVISORY_LOCKS = {
  migrations: '4183927456012387461',
  /** Held while a node removes old journal entries: one node at a time. */
  retention: '4702916384',
  /** Held while a node makes or changes signing keys: one node at a time. */
  signingKeys: '7079882305114',
  /** Held by who locks the whole directory, and shared by who locks it beside others, so that neither overtakes the other for ever. */
  directory: '7079882305115',
  /** Held by who writes about a person, who may not exist yet (with a second number: the hash of the id). */
  person: '1887334515',
  /** Held by the process that runs an embedded cluster, in the cluster's database `postgres`. */
  clusterOwner: '7079882305113',
  /** Held by who raises a journal, at its commit, where a process may answer from memory (with a second number: that of the table). */
  soleLease: '1887334514',
} as const
