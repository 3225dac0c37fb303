/** The numbers of all advisory locks in PostgreSQL, in one place so that each is used once. A lock counts within its database. */
export const ADVISORY_LOCKS = {
  migrations: '4183927456012387461',
  /** Held while a node removes old journal entries: one node at a time. */
  retention: '4702916384',
  /** Held while a node makes or changes signing keys: one node at a time. */
  signingKeys: '7079882305114',
  /** A writer that locks the whole journal holds it alone; writers beside each other share it, so that neither kind overtakes the other for ever. */
  directory: '7079882305115',
  environment: '7079882305116',
  /** A writer about one person, who may not exist yet, holds it with a second number: the hash of the person's id. */
  person: '1887334515',
  /** Held by the process that runs an embedded cluster, in the cluster's database `postgres`. */
  clusterOwner: '7079882305113',
  /** Transactions that raise a journal share it until they end, with a second number: that of the table `sole_lease`. */
  soleLease: '1887334514',
  /** The same, with a second number from the table `lease_holder` and the journal (migrations/0034-shared-lease.sql). */
  intent: '1887334516',
} as const
