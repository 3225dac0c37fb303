/** The numbers of all advisory locks, collected here so that no number is used twice. A lock is valid within its database. */
export const ADVISORY_LOCKS = {
  migrations: '4183927456012387461',
  /** Locked by the node that removes old journal entries. */
  retention: '4702916384',
  /** Locked by the node that makes or changes signing keys. */
  signingKeys: '7079882305114',
  /** Exclusive for a writer of the whole journal, shared for writers beside each other: neither kind can overtake the other for ever. */
  directory: '7079882305115',
  environment: '7079882305116',
  /** A writer about one person, who may not exist yet, holds it with a second number: the hash of the person's id. */
  person: '1887334515',
  /** Locked by the process that runs an embedded cluster, in the cluster's database `postgres`. */
  clusterOwner: '7079882305113',
  /** Transactions that raise a journal share it until they end, with a second number: that of the table `sole_lease`. */
  soleLease: '1887334514',
  /** Transactions that raise a journal share it too, with a second number from the table `lease_holder` and the journal. */
  intent: '1887334516',
} as const
