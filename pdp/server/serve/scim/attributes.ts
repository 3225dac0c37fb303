/** The attributes of users and groups that are kept (RFC 7643 section 7): one table for validation and for /Schemas. */

import { lowerAscii } from '../../../shared/base/blanks.ts'
import { TIERS } from '../../../shared/domain/membership.ts'

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const ENTERPRISE_SCHEMA = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

/** The tiers that a directory may give: all but the organization's owner. */
export const GIVEN_TIERS = TIERS.filter((tier) => tier !== 'owner')

export type Attribute = {
  readonly name: string
  readonly type: 'string' | 'boolean' | 'reference' | 'complex'
  readonly multiValued: boolean
  readonly description: string
  readonly required: boolean
  readonly caseExact: boolean
  readonly mutability: 'readWrite' | 'readOnly' | 'immutable'
  readonly returned: 'default' | 'always' | 'request'
  readonly uniqueness: 'none' | 'server'
  readonly canonicalValues?: readonly string[]
  readonly referenceTypes?: readonly string[]
  readonly subAttributes?: readonly Attribute[]
}

const VALUES_MAX = 50
export const MEMBERS_MAX = 10_000

export const valuesMax = ({ name }: Attribute): number => (name === 'members' ? MEMBERS_MAX : VALUES_MAX)

function attribute(
  name: string,
  description: string,
  options: Partial<Omit<Attribute, 'name' | 'description'>> = {},
): Attribute {
  return {
    name,
    type: options.subAttributes === undefined ? 'string' : 'complex',
    multiValued: false,
    description,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    ...options,
  }
}

const READ_ONLY = { mutability: 'readOnly' } as const
const listOf = (
  name: string,
  description: string,
  { kinds = [], values = [] }: { readonly kinds?: readonly string[]; readonly values?: readonly string[] },
): Attribute =>
  attribute(name, description, {
    multiValued: true,
    subAttributes: [
      attribute('value', 'The value.', { canonicalValues: values }),
      attribute('display', 'Its name for people.'),
      attribute('type', 'What it is for.', { canonicalValues: kinds }),
      attribute('primary', 'Whether it is the preferred one.', { type: 'boolean' }),
    ],
  })

const COMMON: readonly Attribute[] = [
  attribute('externalId', 'The id that the directory has for it.', { caseExact: true }),
]

export const USER_ATTRIBUTES: readonly Attribute[] = [
  ...COMMON,
  attribute('userName', 'The name that the directory knows the person by, usually an e-mail address.', {
    required: true,
    uniqueness: 'server',
  }),
  attribute('name', 'The parts of the name.', {
    subAttributes: [
      attribute('formatted', 'The whole name.'),
      attribute('familyName', 'The family name.'),
      attribute('givenName', 'The given name.'),
      attribute('middleName', 'The middle names.'),
      attribute('honorificPrefix', 'A title.'),
      attribute('honorificSuffix', 'A suffix.'),
    ],
  }),
  attribute('displayName', 'The name that is shown.'),
  attribute('nickName', 'The casual name.'),
  attribute('profileUrl', 'A page about the person.'),
  attribute('title', 'The job title.'),
  attribute('userType', 'The relation to the company.'),
  attribute('preferredLanguage', 'A language tag.'),
  attribute('locale', 'A locale.'),
  attribute('timezone', 'A time zone.'),
  attribute('active', 'Whether the person may act in the organization.', { type: 'boolean' }),
  listOf('emails', 'E-mail addresses. The primary one, else the first, is that of the account.', {
    kinds: ['work', 'home', 'other'],
  }),
  listOf('phoneNumbers', 'Telephone numbers.', {
    kinds: ['work', 'home', 'mobile', 'fax', 'pager', 'other'],
  }),
  attribute('addresses', 'Postal addresses.', {
    multiValued: true,
    subAttributes: [
      attribute('formatted', 'The whole address.'),
      attribute('streetAddress', 'Street and number.'),
      attribute('locality', 'The city.'),
      attribute('region', 'The state or region.'),
      attribute('postalCode', 'The postal code.'),
      attribute('country', 'The country, as two letters (ISO 3166-1).'),
      attribute('type', 'What it is for.', { canonicalValues: ['work', 'home', 'other'] }),
      attribute('primary', 'Whether it is the preferred one.', { type: 'boolean' }),
    ],
  }),
  listOf('roles', 'The tier in the organization.', { values: GIVEN_TIERS }),
  attribute('groups', 'The groups that the person is a direct member of.', {
    ...READ_ONLY,
    multiValued: true,
    returned: 'request',
    subAttributes: [
      attribute('value', 'The id of the group.', READ_ONLY),
      attribute('$ref', 'The address of the group.', { ...READ_ONLY, type: 'reference', referenceTypes: ['Group'] }),
      attribute('display', 'The name of the group.', READ_ONLY),
    ],
  }),
]

export const ENTERPRISE_ATTRIBUTES: readonly Attribute[] = [
  attribute('employeeNumber', 'The number of the person in the company.'),
  attribute('costCenter', 'The cost centre.'),
  attribute('organization', 'The name of the company.'),
  attribute('division', 'The division.'),
  attribute('department', 'The department.'),
  attribute('manager', 'The person’s manager.', {
    subAttributes: [
      attribute('value', 'The id of the manager.'),
      attribute('$ref', 'The address of the manager.', { type: 'reference', referenceTypes: ['User'] }),
      attribute('displayName', 'The name of the manager.'),
    ],
  }),
]

export const GROUP_ATTRIBUTES: readonly Attribute[] = [
  ...COMMON,
  attribute('displayName', 'The name of the group.', { required: true, uniqueness: 'server' }),
  attribute('members', 'Users that the directory brought, and groups.', {
    multiValued: true,
    subAttributes: [
      attribute('value', 'The id of the member.', { mutability: 'immutable' }),
      attribute('$ref', 'The address of the member.', {
        mutability: 'immutable',
        type: 'reference',
        referenceTypes: ['User', 'Group'],
      }),
      attribute('type', 'User or Group.', { mutability: 'immutable', canonicalValues: ['User', 'Group'] }),
      attribute('display', 'The name of the member.', READ_ONLY),
    ],
  }),
]

export type ResourceType = {
  readonly name: 'User' | 'Group'
  readonly schema: string
  readonly attributes: readonly Attribute[]
  /** The attribute whose value must be unique in an organization. */
  readonly unique: 'userName' | 'displayName'
  readonly extension: { readonly schema: string; readonly attributes: readonly Attribute[] } | null
}
export const USER: ResourceType = {
  name: 'User',
  schema: USER_SCHEMA,
  attributes: USER_ATTRIBUTES,
  unique: 'userName',
  extension: { schema: ENTERPRISE_SCHEMA, attributes: ENTERPRISE_ATTRIBUTES },
}
export const GROUP: ResourceType = {
  name: 'Group',
  schema: GROUP_SCHEMA,
  attributes: GROUP_ATTRIBUTES,
  unique: 'displayName',
  extension: null,
}

/** Attribute names are compared without case. */
export const named = (attributes: readonly Attribute[], name: string): Attribute | null =>
  attributes.find((one) => lowerAscii(one.name) === lowerAscii(name)) ?? null
