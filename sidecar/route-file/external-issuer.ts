/** Reads how the tokens of an issuer other than the PDP name subjects, clients, organizations and groups. */
import type { Node } from 'yaml'
import { ID } from '../../pdp/shared/token/claims.ts'
import type { IssuerClaimNames, IssuerTerms } from '../../pdp/shared/token/issuer-claims.ts'
import { CLAIM_NAME, CLAIMS, EXTERNAL, SUBJECT_PREFIX, TOKEN_TYPES } from './issuer-format.ts'
import type { YamlReader } from './words/yaml-reader.ts'

/** `resources`: the audience of its tokens unless `audience` is there. Reports errors to the reader. */
export function readExternal(reader: YamlReader, node: Node, resources: readonly string[] | null): IssuerTerms | null {
  const members = reader.members(node, 'external', EXTERNAL)
  if (members === null) return null
  const prefix = pattern(reader, members.subject_prefix, {
    what: 'subject_prefix',
    form: SUBJECT_PREFIX,
    says: '1 to 64 visible ASCII characters without #',
  })
  const organizations = reader.list(members.organizations, 'organizations', readOrganization) ?? []
  const values = readMap(reader, members.organization_values, 'organization_values')
  for (const { keyNode, text } of values ?? [])
    if (!organizations.includes(text)) reader.report(keyNode, `${text} is not one of organizations`)
  const [only, ...more] = (members.audience === null ? resources : reader.texts(members.audience, 'audience')) ?? []
  const workloads = members.workloads !== null && reader.boolean(members.workloads, 'workloads') === true
  const required = readMap(reader, members.required_claims, 'required_claims')
  const claims = readClaims(reader, members.claims)
  if (values !== null && claims.organization === undefined)
    reader.report(members.organization_values, 'organization_values needs claims.organization')
  const former = members.renamed_from === null ? null : reader.text(members.renamed_from, 'renamed_from')
  if (prefix === null || only === undefined) return null
  return {
    audience: more.length === 0 ? only : [only, ...more],
    ...(workloads && { workloads }),
    subject_prefix: prefix,
    ...(former !== null && { renamed_from: former }),
    organizations,
    claims,
    ...(members.typ !== null && { typ: readTyp(reader, members.typ) }),
    ...(values !== null && { organization_values: textByName(values) }),
    ...(required !== null && { required_claims: textByName(required) }),
  }
}

/** A sentence about two issuers whose prefixes could give two people one subject; null: there are no such issuers. */
export function prefixConflict(issuers: readonly Named[]): string | null {
  for (const one of issuers) {
    const { external: terms } = one
    if (terms === null) continue
    const prefix = terms.subject_prefix
    const other = issuers.find(
      (two) => two !== one && two.external?.subject_prefix.startsWith(prefix) === true && !isRenamed(one, two),
    )
    if (other === undefined) continue
    const unlike = `the subject_prefix ${other.external?.subject_prefix} begins with ${prefix}, that of another issuer`
    return other.external?.subject_prefix === prefix
      ? `${unlike}; if ${one.issuer} and ${other.issuer} are two names of one issuer, say so by renamed_from`
      : unlike
  }
  return null
}

type Named = { readonly issuer: string; readonly external: IssuerTerms | null }

function isRenamed(one: Named, other: Named): boolean {
  if (one.external?.subject_prefix !== other.external?.subject_prefix) return false
  return one.external?.renamed_from === other.issuer || other.external?.renamed_from === one.issuer
}

function readTyp(reader: YamlReader, node: Node): (typeof TOKEN_TYPES)[number] {
  const text = reader.text(node, 'typ')
  const typ = TOKEN_TYPES.find((known) => known === text)
  if (text !== null && typ === undefined) reader.report(node, `typ must be ${TOKEN_TYPES.join(' or ')}`)
  return typ ?? 'at+jwt'
}

function readClaims(reader: YamlReader, node: Node | null): IssuerClaimNames {
  const members = node === null ? null : reader.members(node, 'claims', CLAIMS)
  return Object.fromEntries(
    Object.entries(members ?? {}).flatMap(([name, value]) => {
      const claim = pattern(reader, value, { what: name, form: CLAIM_NAME, says: 'the name of a claim' })
      return claim === null ? [] : [[name, claim]]
    }),
  )
}

function readOrganization(reader: YamlReader, node: Node | null): string | null {
  return pattern(reader, node, { what: 'an organization', form: ID, says: 'the id of an organization' })
}

type NamedText = { readonly key: string; readonly keyNode: Node | null; readonly text: string }

function readMap(reader: YamlReader, node: Node | null, what: string): readonly NamedText[] | null {
  if (node === null) return null
  const entries = reader.entries(node, what) ?? []
  if (entries.length === 0) reader.report(node, `${what} must have at least one entry`)
  return entries.map(({ key, keyNode, value }) => ({ key, keyNode, text: reader.text(value, key) ?? '' }))
}

const textByName = (entries: readonly NamedText[]): { readonly [name: string]: string } =>
  Object.fromEntries(entries.map(({ key, text }) => [key, text]))

function pattern(
  reader: YamlReader,
  node: Node | null,
  { what, form, says }: { readonly what: string; readonly form: RegExp; readonly says: string },
): string | null {
  const text = node === null ? null : reader.text(node, what)
  if (text === null || form.test(text)) return text
  reader.report(node, `${what} must be ${says}`)
  return null
}
