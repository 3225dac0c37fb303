/** What the ecosystem's documentation says a model means, case by case, as store files. */
import { describe, expect, test } from 'vitest'
import { runStores, storeText } from './stores.ts'

type Case = { model: string; tuples: readonly string[]; expect: readonly string[] }
const cases: Readonly<Record<string, Case>> = {
  'a userset as the user of a check': {
    model: `
      type user
      type group
        relations
          define member: [user, group#member]
      type doc
        relations
          define viewer: [user, group#member]
          define reader: viewer`,
    tuples: [
      'doc:1 viewer group:a#member',
      'group:a member group:b#member',
      'group:b member user:u',
      'doc:2 viewer user:u',
    ],
    expect: [
      'group:a#member viewer doc:1',
      'group:b#member viewer doc:1',
      'group:b#member reader doc:1',
      'not group:c#member viewer doc:1',
      'not group:b#member viewer doc:2',
      'not group:a viewer doc:1',
      'objects group:b#member viewer doc = doc:1',
      'users group#member viewer doc:1 = group:a#member group:b#member',
      'users user viewer doc:1 = user:u',
    ],
  },
  'a userset holds itself, also through rules': {
    model: `
      type user
      type group
        relations
          define admin: [user]
          define member: [user, group#member] or admin
          define guest: [user] but not admin
      type doc
        relations
          define parent: [group]
          define viewer: member from parent`,
    tuples: ['doc:1 parent group:x', 'group:x guest user:z'],
    expect: [
      'group:x#member member group:x',
      'group:x#admin member group:x',
      'not group:x#member admin group:x',
      'group:nobody#member member group:nobody',
      'group:x#guest guest group:x',
      'group:x#member viewer doc:1',
      'group:x#admin viewer doc:1',
      'objects group:x#member member group = group:x',
      'users group#member viewer doc:1 = group:x#member',
      'users group#member member group:y = group:y#member',
    ],
  },
  wildcards: {
    model: `
      type user
      type robot
      type doc
        relations
          define viewer: [user, user:*, robot]
          define editor: [user]`,
    tuples: ['doc:1 viewer user:*', 'doc:1 viewer user:anne', 'doc:2 viewer robot:r', 'doc:2 editor user:bob'],
    expect: [
      'user:anybody viewer doc:1',
      'user:* viewer doc:1',
      'not robot:r viewer doc:1',
      'not user:* viewer doc:2',
      'not user:* editor doc:2',
      'users user viewer doc:1 = user:* user:anne',
      'users robot viewer doc:1 =',
      'users robot viewer doc:2 = robot:r',
      'objects user:* viewer doc = doc:1',
      'objects user:bob viewer doc = doc:1',
    ],
  },
  'exclusion and wildcards': {
    model: `
      type user
      type doc
        relations
          define blocked: [user, user:*]
          define viewer: [user, user:*] but not blocked`,
    tuples: [
      'doc:1 viewer user:*',
      'doc:1 viewer user:anne',
      'doc:1 viewer user:eve',
      'doc:1 blocked user:eve',
      'doc:2 viewer user:anne',
      'doc:2 blocked user:*',
      'doc:3 viewer user:*',
      'doc:3 blocked user:*',
    ],
    expect: [
      'user:anybody viewer doc:1',
      'not user:eve viewer doc:1',
      'user:* viewer doc:1',
      'not user:anne viewer doc:2',
      'not user:* viewer doc:3',
      'users user viewer doc:1 = user:* user:anne',
      'users user viewer doc:2 =',
      'users user viewer doc:3 =',
      'objects user:eve viewer doc =',
      'objects user:* viewer doc = doc:1',
    ],
  },
  'intersection and wildcards': {
    model: `
      type user
      type doc
        relations
          define a: [user, user:*]
          define b: [user, user:*]
          define both: a and b
          define here: [user, user:*] and b`,
    tuples: [
      'doc:1 a user:*',
      'doc:1 b user:anne',
      'doc:2 a user:*',
      'doc:2 a user:anne',
      'doc:2 b user:*',
      'doc:3 a user:anne',
      'doc:3 b user:bob',
      'doc:4 here user:*',
      'doc:4 b user:anne',
    ],
    expect: [
      'users user both doc:1 = user:anne',
      'users user both doc:2 = user:* user:anne',
      'users user both doc:3 =',
      'users user here doc:4 = user:anne',
      'not user:* both doc:1',
      'user:* both doc:2',
      'objects user:anne both doc = doc:1 doc:2',
      'objects user:zoe both doc = doc:2',
    ],
  },
  'a user that an exclusion spares is named': {
    model: `
      type user
      type doc
        relations
          define unblocked: [user]
          define blocked: [user, user:*] but not unblocked
          define viewer: [user:*] but not blocked`,
    tuples: ['doc:1 viewer user:*', 'doc:1 blocked user:anne', 'doc:1 unblocked user:anne', 'doc:1 blocked user:bob'],
    expect: [
      'user:anne viewer doc:1',
      'not user:bob viewer doc:1',
      'user:zoe viewer doc:1',
      'users user viewer doc:1 = user:* user:anne',
    ],
  },
  'only the type of the filter is listed, and usersets are followed with wildcards in them': {
    model: `
      type user
      type group
        relations
          define member: [user, user:*]
      type doc
        relations
          define viewer: [user, group#member]`,
    tuples: ['doc:1 viewer group:all#member', 'group:all member user:*', 'group:all member user:anne'],
    expect: [
      'users user viewer doc:1 = user:* user:anne',
      'users group viewer doc:1 =',
      'users group#member viewer doc:1 = group:all#member',
      'objects user:zoe viewer doc = doc:1',
    ],
  },
  'rules from a parent, through levels and cycles': {
    model: `
      type user
      type folder
        relations
          define parent: [folder]
          define owner: [user]
          define viewer: [user] or owner or viewer from parent
      type doc
        relations
          define folder: [folder]
          define viewer: viewer from folder
          define can_share: owner from folder and viewer`,
    tuples: [
      'folder:a owner user:anne',
      'folder:b parent folder:a',
      'folder:a parent folder:b',
      'folder:c parent folder:c',
      'doc:1 folder folder:b',
      'doc:2 folder folder:c',
    ],
    expect: [
      'user:anne viewer doc:1',
      'not user:anne can_share doc:1',
      'not user:anne viewer doc:2',
      'not user:bob viewer folder:b',
      'objects user:anne viewer folder = folder:a folder:b',
      'users user viewer doc:1 = user:anne',
      'folder:a#viewer viewer doc:1',
    ],
  },
  'a relation that only some of the parents have, and one with an exclusion in a circle of types': {
    model: `
      type user
      type folder
        relations
          define parent: [doc]
          define owner: [user] or kept from parent
          define kept: owner
          define writer: [user, user:*] or owner
      type doc
        relations
          define parent: [folder, doc]
          define banned: [user]
          define owner: [user] or kept from parent
          define kept: owner but not banned
          define can_write: writer from parent`,
    tuples: [
      'folder:a owner user:anne',
      'doc:b parent folder:a',
      'folder:c parent doc:b',
      'doc:d parent folder:c',
      'folder:a parent doc:d',
      'doc:e parent doc:d',
      'doc:b owner user:bob',
      'doc:b banned user:bob',
    ],
    expect: [
      'user:anne owner doc:d',
      'user:anne can_write doc:b',
      'not user:anne can_write doc:e',
      'not user:bob owner folder:c',
      'objects user:anne owner folder = folder:a folder:c',
      'objects user:bob owner doc = doc:b',
      'users user can_write doc:d = user:anne',
      'users user owner doc:b = user:anne user:bob',
    ],
  },
  'usersets in a cycle': {
    model: `
      type user
      type group
        relations
          define member: [user, group#member]`,
    tuples: ['group:a member group:b#member', 'group:b member group:a#member', 'group:b member user:anne'],
    expect: [
      'user:anne member group:a',
      'not user:bob member group:a',
      'objects user:anne member group = group:a group:b',
      'users user member group:a = user:anne',
      'users group#member member group:a = group:a#member group:b#member',
    ],
  },
  'types and relations that mean something else here': {
    model: `
      type user
      type group
        relations
          define member: [user]
      type organization
        relations
          define owner: [user]
          define member: [user, group#member] or owner
          define active_member: member`,
    tuples: [
      'organization:tests owner user:anne',
      'organization:tests member group:g#member',
      'group:g member user:bob',
    ],
    expect: [
      'user:anne member organization:tests',
      'user:bob active_member organization:tests',
      'not user:bob owner organization:tests',
    ],
  },
  'names with capitals, other scripts and long ids': {
    model: `
      type User
      type Dokument
        relations
          define canView: [User]`,
    tuples: ['Dokument:Straße/1:2 canView User:ann@example.com', `Dokument:${'x'.repeat(200)} canView User:Zoë`],
    expect: [
      'User:ann@example.com canView Dokument:Straße/1:2',
      `objects User:Zoë canView Dokument = Dokument:${'x'.repeat(200)}`,
      'not User:zoë canView Dokument:Straße/1:2',
    ],
  },
}

describe('a store file', () => {
  test.each(Object.entries(cases))('means what the ecosystem says: %s', async (_, store) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': storeText(store) })
    const asked = lines
      .filter((line) => !line.startsWith('REFUSED '))
      .map((line) => line.replace(/, \d+ refused.*/, ''))
    expect(asked).toEqual([`${store.expect.length} passed, 0 failed`])
    expect(status).toBe(lines[0]?.startsWith('REFUSED ') === true ? 1 : 0)
  })
})
