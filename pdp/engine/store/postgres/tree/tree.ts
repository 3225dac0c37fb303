/** The organization tree in PostgreSQL. Each statement reads only the part that is asked for. */
import type { Organization } from '../../../../shared/domain/organization.ts'
import type { OrganizationFilter } from '../../contract.ts'
import type { Queries } from '../../directory.ts'

/** A recursive table `place` of an organization and all below it. `lateral` makes it go by index, one level after the other. */
export const placesBelow = (parameter: string): string => `
  with recursive place as (
    select organization_id from organization where organization_id = ${parameter}
    union select o.organization_id from place p, lateral (
      select organization_id from organization where parent_id = p.organization_id offset 0) o)`

const COLUMNS = 'organization_id as id, name, parent_id as parent'
const PAGE = 'organization_id > $1 order by organization_id limit $2'
const ALL = `select ${COLUMNS} from organization where ${PAGE}`
const CHILDREN = `select ${COLUMNS} from organization where parent_id = $3 and ${PAGE}`
const WITHIN = `
  ${placesBelow('$3')}, page as (select organization_id as at from place where ${PAGE})
  select o.* from page, lateral (select ${COLUMNS} from organization where organization_id = at offset 0) o order by at`

export async function readOrganizations(
  sql: Queries,
  filter: OrganizationFilter,
  { after, countMax }: { readonly after: string | null; readonly countMax: number },
): Promise<readonly Organization[]> {
  const page = [after ?? '', countMax]
  if ('within' in filter) return sql.query<Organization>(WITHIN, [...page, filter.within])
  if ('parent' in filter) return sql.query<Organization>(CHILDREN, [...page, filter.parent])
  return sql.query<Organization>(ALL, page)
}
