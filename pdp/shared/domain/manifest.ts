/** App manifests: what an application declares. */

export type Manifest = {
  readonly app: string
  readonly audiences: readonly string[]
  readonly permissions: { readonly [key: string]: string }
  readonly roles: { readonly [key: string]: { readonly name: string; readonly permissions: readonly string[] } }
  /** OpenFGA language, schema 1.1; null for none. */
  readonly model: string | null
  /**
   * `both`: a client may do for a person at this app what the person and the client both may, if the person has delegated it.
   * Absent: everything that the person may.
   */
  readonly actors?: 'both'
}
/** A manifest as stored; version 1 is the first. */
export type StoredManifest = Manifest & { readonly version: number }
